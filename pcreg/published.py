"""Figures of FCGF from the literature, to print beside ours; recalls and ratios as fractions.

They are means over all test scenes or sequences, with keys as in `pcreg.tables`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    method: str
    source: str
    figures: dict[str, float]


PUBLISHED = {
    "3DMatch": (
        Published(
            "FCGF, 5000 points",
            "PointCNN++ paper, Table 2: 8 scenes, 1623 pairs, inliers closer than 0.1 m",
            {"IR": 0.528, "FMR": 0.974, "RR": 0.851},
        ),
        Published(
            "FCGF, own evaluation",
            "github.com/chrischoy/FCGF, README, 2.5 cm, 32 columns: 8 scenes, one-way matches",
            {"FMR_one_way": 0.9578},
        ),
    ),
    "KITTI": (
        Published(
            "FCGF, own evaluation",
            "github.com/chrischoy/FCGF, README, 30 cm, 32 normalised columns: sequences 8-10, 555 pairs, "
            "separate masks, ground truth in the order icp-fcgf-compat",
            {"RTE_separate": 0.0639, "RRE_separate": 0.2253},
        ),
    ),
}
