"""What the stacks of a trained model do: nothing here trains."""
