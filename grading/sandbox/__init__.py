"""Kernels in which stranger's code runs shut in: ``SandboxedKernelManager(policy=Policy(...))``."""

from grading.sandbox.bubblewrap import available
from grading.sandbox.manager import SandboxedKernelManager
from grading.sandbox.policy import Policy, SandboxError

__all__ = ["Policy", "SandboxError", "SandboxedKernelManager", "available"]
