"""What runs beside a student's code: it calls the code with given inputs and hands back plain data.

Nothing in this package knows a right answer, so it may stand in the student's own process.
"""

from proof_lm.probes.codec import decode, encode
from proof_lm.probes.run import Answer, answer_plan, run_case

__all__ = ["Answer", "answer_plan", "decode", "encode", "run_case"]
