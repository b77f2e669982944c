"""The rows of the benchmark `honest_judge.py`: agents that cheat, agents that work honestly, and their projects."""
