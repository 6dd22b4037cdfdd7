"""The order in which a training reads its sequences, as docs/data.md describes it."""


def philox(key, counter):
    """Philox4x32-10"""
    c, k0, k1 = list(counter), key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return c


def sequence_at(seed, num_sequences, epoch, position, dataset=0):
    """The sequence at a position of an epoch; dataset: its number in a mixture"""
    half = max(1, ((num_sequences - 1).bit_length() + 1) // 2)
    mask, value = (1 << half) - 1, position
    while True:
        left, right = value >> half, value & mask
        for number in range(6 * dataset, 6 * dataset + 6):
            word = philox(seed, [right, number, epoch & 0xFFFFFFFF, epoch >> 32])[0]
            left, right = right, left ^ word & mask
        value = left << half | right
        if value < num_sequences:
            return value


def mixture_at(seed, counts, weights, index):
    """counts, weights: of each dataset; returns a dataset and one of its sequences"""
    left = sum(weights)
    for dataset, (count, weight) in enumerate(zip(counts, weights)):
        before = index * weight // left
        if (index + 1) * weight // left > before:
            return dataset, sequence_at(seed, count, before // count, before % count, dataset)
        index, left = index - before, left - weight
