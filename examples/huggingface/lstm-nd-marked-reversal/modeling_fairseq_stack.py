from fairseq_stack.huggingface import *  # noqa: F403
