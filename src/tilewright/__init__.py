"""Tilewright maps tensor workloads onto DNN accelerators, and says how far from the optimum it can still be."""
