"""What a reader gets: one HTML file with the tables, the figures and what was run on what.

    contents        everything on the page, gathered from a store
    tables          a recipe's table, cell by cell
    figures         what records say: the shift's effect, accuracy against removal share, time
    sweeps          one method tested in many ways: accuracy against alpha, and against where the shift sits
    over_time       test-time methods on streams of test images, from the files of `benchmarks.streams`
    looking         what records do not hold: every test image before and after the shift, counted anew from a model
    style_map       Phi in two dimensions, and the shift as arrows
    predictions     scores, confusion and calibration, before and after
    before_after    what a model says of images as it is and with the shift
    gallery         images with score, nearest domain and both predictions
    figure          a drawing with its legend and its data
    charts          lines, dumbbells, bars, histograms, matrices; drawing has the SVG below them
    html            the page: template, style and script in one file
    extras          what the report needs beyond the core

Figures are SVG written by hand: they follow the page's colours, light and dark, and say their values when pointed at.
"""
