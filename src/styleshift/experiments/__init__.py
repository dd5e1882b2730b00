"""Many runs and what came of them: recipes, the grid of runs behind one, the store of their results, the tables.

    recipe          a TOML file: one table or figure of the paper, its rows and columns
    methods         what a row's method sets in a training
    scales          how long and how large the trainings are: smoke, cpu, paper
    planning        a recipe's runs, each with everything its result depends on
    keys            a run's key: the hash of all that
    materials       what all runs of a recipe share: images and first weights
    generated       images for the smoke scale
    running         one run: training, and every way of testing it
    record          what is kept of it, with its provenance
    store           the records of all runs, for any number of processes at once
    runner          all runs of a recipe
    table           means and deviations beside the paper's figures; table_formats shows them
    paper           the paper's figures
    own_images      a training without a recipe
"""
