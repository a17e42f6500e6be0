def most_stable_configuration(experiment):
    names = list(experiment)
    best, place = names[0], 1
    while place < len(names):
        norms = experiment[names[place]]
        if max(norms) / norms[0] < max(experiment[best]) / experiment[best][0]:
            best = names[place]
            place += 1
    return best
