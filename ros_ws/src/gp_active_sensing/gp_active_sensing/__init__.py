"""Active sensing with Gaussian processes: choose the next place to measure.

Importing this package loads neither ROS nor torch nor a plotting library; import the part that is
needed, for example ``from gp_active_sensing.loop import SensingLoop``.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
