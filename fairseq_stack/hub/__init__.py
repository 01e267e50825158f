"""A trained model and everything it needs: the files beside its checkpoint, and the model as an object in Python."""
