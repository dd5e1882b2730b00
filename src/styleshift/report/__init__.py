"""What a reader gets: one HTML file with the tables, the figures and what was run on what.

contents        everything on the page, gathered from a store
tables          a recipe's table, cell by cell
figures         what records say: accuracy against alpha, removal share, location, time
looking         what records do not hold: every test image before and after the shift, counted anew from a model
style_map       Phi in two dimensions, and the shift as arrows
predictions     confusion and calibration, before and after
gallery         test images with score, nearest domain and both predictions
figure          a drawing with its legend and its data
charts          lines, dumbbells, bars, matrices; drawing has the SVG below them
html            the page: template, style and script in one file
extras          what the report needs beyond the core
"""
