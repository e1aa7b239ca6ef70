"""What computes steps: a real engine or a cost model, behind one small interface."""
