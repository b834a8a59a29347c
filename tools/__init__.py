"""The tools themselves: one catalogue, written out, and a folder per pack.

`offers` says what a pack offers: each tool as it is listed, with its arguments, and what a call demands. The modules
beside it do the work; they are named there by `Later`, and loaded with the first call.
"""
