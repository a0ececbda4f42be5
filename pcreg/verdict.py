"""Whether to believe a registration.

Under a wrong motion floors and walls still lie on floors and walls, so overlap alone says little. Two
things separate right from wrong. Descriptor matches: a wrong motion that RANSAC found through a handful
of chance matches loses them once ICP has slid it onto the nearest surfaces, so they are counted after
refinement. And free space: a wrong motion puts things where the other sensor looked straight through.
The thresholds were set on fragments of real rooms, overlapping and unrelated; they make no calibrated
probability.
"""

from dataclasses import dataclass

MINIMUM_INLIERS = 15  # chance rarely brings more matches together
MINIMUM_RATIO = 0.01  # of all matches: what chance brings together grows with their number
MINIMUM_OVERLAP = 0.2  # of the smaller cloud: less is a shared plane more often than a shared place
DOUBT = 0.04  # of intrusion doubles the inliers needed; right motions reach 0.02, fused fragments 0.05
UNSEEN = 2.0  # times the inliers, where no sensor's place is known and free space is a guess


@dataclass(frozen=True)
class Verdict:
    registered: bool
    confidence: float  # 0..1, at least 0.5 exactly when registered
    reason: str  # in words, with the numbers


def judge(
    *,
    matches: int,
    inliers: int,
    overlap: float,
    intrusion: float,
    rmse: float,
    sensors_known: bool = True,
) -> Verdict:
    """Believe a registration if its inliers and its overlap reach their thresholds.

    `inliers` of the `matches` are brought together by the refined motion; `overlap` is the fraction of
    the smaller cloud that it lays onto the other, `rmse` metres apart; `intrusion` is the fraction of
    a cloud that it puts into the free space of the other, and multiplies the inliers needed by
    1 + (intrusion / DOUBT)^2. It takes twice as many if the sensors' places, and so the free space, are
    not known. With v the weaker of the two numbers as a multiple of its threshold, the
    confidence is v^2 / (1 + v^2): one half at the threshold, 0.9 at three times it.
    """
    chance = max(MINIMUM_INLIERS, MINIMUM_RATIO * matches) * (1.0 if sensors_known else UNSEEN)
    needed = chance * (1 + (intrusion / DOUBT) ** 2)
    weakest = min(inliers / needed, overlap / MINIMUM_OVERLAP)
    if weakest >= 1:
        reason = (
            f"{inliers} of {matches} matches agree, {overlap:.0%} of the smaller cloud lies on the other, "
            f"{100 * rmse:.2g} cm apart, and {intrusion:.0%} contradicts what was seen"
        )
    elif inliers < chance:
        reason = (
            f"only {inliers} of {matches} matches agree and chance explains up to {chance:.0f}; the clouds "
            "may not overlap, or the voxel size may not suit them"
        )
    elif inliers < needed:
        reason = (
            f"{intrusion:.0%} of one cloud stands where the other's sensor looked through, too much for "
            f"{inliers} agreeing matches"
        )
    else:
        reason = (
            f"only {overlap:.0%} of the smaller cloud lies on the other; it takes {MINIMUM_OVERLAP:.0%} to "
            "tell a shared place from a shared plane"
        )
    return Verdict(weakest >= 1, weakest**2 / (1 + weakest**2), reason)
