# gp_active_sensing on ROS 2 Jazzy. Build: docker build -t gp_active_sensing .
# Stage `base` has what the package needs, without the package: .devcontainer/ works in it.

FROM ros:jazzy-ros-base AS base
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# make, pip and venv: of `make env` in the development container.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*

# The dependencies are a layer of their own, which only a change of package.xml makes again. For
# rosbags, mcap and pyogrio there is no package, and that of osmium is too old. Ubuntu's pip refuses to work
# beside the system's: it is told to.
WORKDIR /ws
COPY ros_ws/src/gp_active_sensing/package.xml src/gp_active_sensing/package.xml
RUN apt-get update \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install --from-paths src --ignore-src --default-yes --skip-keys python3-rosbags-pip \
    && rm -rf /var/lib/apt/lists/*
COPY requirements/system-ros.txt requirements/system-ros.txt
RUN python3 -m pip install --no-cache-dir --break-system-packages \
    --constraint requirements/system-ros.txt rosbags==0.11.9 mcap 'osmium>=4.0' 'pyogrio>=0.7.2'

# A shell of the development container does not pass through the entry point.
RUN echo ". /opt/ros/$ROS_DISTRO/setup.bash" >> /etc/bash.bashrc


FROM base AS robot
COPY ros_ws/src src
RUN source "/opt/ros/$ROS_DISTRO/setup.bash" \
    && colcon build --packages-select gp_active_sensing \
    && sed -i '/^exec/i source /ws/install/setup.bash --' /ros_entrypoint.sh

# Missions are kept where the user mounts a folder.
WORKDIR /missions
CMD ["ros2", "launch", "gp_active_sensing", "traffic_sim.launch.py", "exit_at_end:=true"]
