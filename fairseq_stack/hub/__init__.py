"""A trained model with all that it needs: the files beside its checkpoint, and the model as an object in Python."""
