"""Numbers out of messages: of ROS classes and of a bag's decoded records alike; no ROS in here."""
