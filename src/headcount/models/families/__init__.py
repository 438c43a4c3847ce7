"""models/families"""
