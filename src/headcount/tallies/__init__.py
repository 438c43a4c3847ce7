"""tallies"""
