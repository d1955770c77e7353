"""Anytime nonmyopic planner ⟨α,ε⟩-BAL: policy, tree search, branching and bounds."""
