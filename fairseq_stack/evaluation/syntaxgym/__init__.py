"""The test suites of SyntaxGym (Hu et al., 2020): what they predict of surprisals, and how often it holds."""
