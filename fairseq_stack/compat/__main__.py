"""``python -m fairseq_stack.compat`` prints the table of what is changed in fairseq."""

from fairseq_stack.compat.replacing import table

if __name__ == "__main__":
    print(table())
