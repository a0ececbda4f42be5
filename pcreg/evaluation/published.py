"""Figures from the literature, to print beside ours; recalls and ratios as fractions, metres, degrees.

They belong to a benchmark and the protocol by which they were measured, with keys as in
`pcreg.evaluation.aggregate` and values by the number of samples. A source marked "unchecked" was not looked
up in the paper: look it up before citing it.
"""

from dataclasses import dataclass

SAMPLES = (5000, 2500, 1000, 500, 250)

Curve = dict[int | None, float]  # by the number of samples; None: all points


@dataclass(frozen=True)
class Published:
    method: str
    source: str
    figures: dict[str, Curve]


def _percent(text: str) -> Curve:
    """The five columns of a table in percent."""
    return {samples: round(float(word) / 100, 5) for samples, word in zip(SAMPLES, text.split(), strict=True)}


def _all_points(**figures: float) -> dict[str, Curve]:
    return {key: {None: value} for key, value in figures.items()}


_TABLE_2 = "PointCNN++ paper, Table 2: 8 scenes, 1623 pairs, inliers closer than 0.1 m"
_NOTES = "evaluation notes in the repository of PointCNN++'s authors (pointelligence)"
_COFINET = "github.com/haoyu94/Coarse-to-fine-correspondences, its result files"
_GEOTRANSFORMER = "GeoTransformer, CVPR 2022, tables with RANSAC-50k; unchecked"
_KITTI = (
    "GeoTransformer, CVPR 2022, KITTI table: 555 pairs, 2 m / 5 deg, joint masks, "
    "FCGF-order ground truth; unchecked"
)
_BUFFER_X = "BUFFER-X, ICCV 2025 (arXiv 2503.07940), trained on 3DMatch; unchecked"
_BUFFER_X_GATE = (
    "BUFFER-X, by its code's gate of 15 deg / 0.3 m and with its refinement: 1,619 pairs of 3DMatch, "
    "1,781 of 3DLoMatch; unchecked"
)

_KITTI_ROWS = (
    Published(
        "GeoTransformer (LGR, no RANSAC)",
        "github.com/qinzheng93/GeoTransformer, README: 555 pairs, 2 m / 5 deg, joint masks, "
        "FCGF-order ground truth",
        {"RR_2m_5deg": {None: 0.998}} | _all_points(RTE_joint_mean=0.062, RRE_joint_mean=0.230),
    ),
    *(
        Published(
            method,
            _KITTI,
            {"RR_2m_5deg": {None: RR}} | _all_points(RTE_joint_mean=RTE, RRE_joint_mean=RRE),
        )
        for method, RTE, RRE, RR in (
            ("FCGF", 0.095, 0.30, 0.966),
            ("Predator", 0.068, 0.27, 0.998),
            ("CoFiNet", 0.082, 0.41, 0.998),
        )
    ),
)


def _whole_systems(gate: float, official: float, geotransformer: float) -> tuple[Published, ...]:
    """Recalls of what registers pairs of 3DMatch's lists from beginning to end."""
    return (
        Published("BUFFER-X, refined", _BUFFER_X_GATE, {"RR_0.3m_15deg": {None: gate}}),
        Published("BUFFER-X", _BUFFER_X, {"RR": {None: official}}),
        Published("GeoTransformer, RANSAC", _GEOTRANSFORMER, {"RR": {None: geotransformer}}),
    )


PUBLISHED: dict[tuple[str, str], tuple[Published, ...]] = {
    ("3DMatch", "PROTO-A"): (
        Published(
            "FCGF",
            _TABLE_2,
            {
                "RR": _percent("85.1 84.7 83.3 81.6 71.4"),
                "FMR": _percent("97.4 97.3 97.0 96.7 96.6"),
                "IR": _percent("52.8 51.1 46.7 41.5 34.1"),
            },
        ),
        Published(
            "Predator",
            _TABLE_2,
            {
                "RR": _percent("89.0 89.9 90.6 88.5 86.6"),
                "FMR": _percent("96.6 96.6 96.5 96.3 96.5"),
                "IR": _percent("58.0 58.4 57.1 54.1 49.3"),
            },
        ),
        Published(
            "FCGF, own evaluation",
            "github.com/chrischoy/FCGF, README, 2.5 cm, 32 columns: 8 scenes, 5000 raw points, one-way",
            {"FMR_one_way": {5000: 0.9578}},
        ),
    ),
    ("3DMatch", "PROTO-B"): (
        Published(
            "CoFiNet",
            _COFINET,
            {
                "RR": _percent("89.4 90.3 88.4 88.8 87.3"),
                "FMR": _percent("98.3 98.2 98.4 98.0 98.4"),
                "IR": _percent("49.9 51.2 52.0 52.1 52.3"),
            },
        ),
        Published(
            "GeoTransformer (top N, not random)",
            _TABLE_2,
            {
                "RR": _percent("91.4 91.1 92.0 91.7 91.2"),
                "FMR": _percent("97.9 98.0 98.1 98.2 98.3"),
                "IR": _percent("70.5 72.9 75.2 79.8 84.6"),
            },
        ),
    ),
    ("3DMatch", "PROTO-C"): (
        Published(
            "PointCNN++",
            "PointCNN++ paper, Table 2: the paper prints 0.1 m, its documentation 0.3 m for inliers",
            {
                "RR_rmse": _percent("90.3 90.2 89.2 89.1 88.3"),
                "FMR": _percent("98.9 99.1 99.1 98.4 99.2"),
                "IR": _percent("58.2 57.8 57.3 52.1 53.4"),
            },
        ),
        Published(
            "PointCNN++, released weights (top N, not random)",
            _NOTES,
            {
                "RR_rmse": _percent("92.8 93.4 93.0 91.9 87.9"),
                "FMR": _percent("99.9 99.9 99.9 99.6 99.4"),
                "IR": _percent("57.5 57.7 61.3 64.8 66.9"),
            },
        ),
        Published(
            "PointCNN++, trained anew, three seeds",
            f"{_NOTES}; IR is given once for all N",
            {
                "RR_rmse": _percent("93.6 93.4 93.6 93.0 93.2"),
                "IR": _percent("58.7 58.7 58.7 58.7 58.7"),
            },
        ),
    ),
    ("3DLoMatch", "PROTO-A"): (
        Published(
            "FCGF",
            _GEOTRANSFORMER,
            {
                "RR": _percent("40.1 41.7 38.2 35.4 26.8"),
                "FMR": _percent("76.6 75.4 74.2 71.7 67.3"),
                "IR": _percent("21.4 20.0 17.2 14.8 11.6"),
            },
        ),
        Published(
            "Predator",
            _GEOTRANSFORMER,
            {
                "RR": _percent("59.8 61.2 62.4 60.8 58.1"),
                "FMR": _percent("78.6 77.4 76.3 75.7 75.3"),
                "IR": _percent("26.7 28.1 28.3 27.5 25.8"),
            },
        ),
    ),
    ("3DLoMatch", "PROTO-B"): (
        Published(
            "CoFiNet",
            _COFINET,
            {
                "RR": _percent("67.2 66.2 65.8 64.0 61.3"),
                "FMR": _percent("83.2 83.1 82.9 82.7 82.7"),
                "IR": _percent("24.4 25.9 26.7 26.8 27.1"),
            },
        ),
        Published(
            "GeoTransformer (top N, not random)",
            _GEOTRANSFORMER,
            {
                "RR": _percent("75.0 74.8 74.2 74.1 73.5"),
                "FMR": _percent("88.3 88.6 88.8 88.6 88.3"),
                "IR": _percent("43.5 45.3 46.2 52.9 57.7"),
            },
        ),
    ),
    ("KITTI", "KITTI"): (
        Published(
            "FCGF, own evaluation",
            "github.com/chrischoy/FCGF, README, 30 cm, 32 normalised columns: separate masks, FCGF-order "
            "ground truth, "
            "4,000,000 samples",
            _all_points(RTE_separate_mean=0.0639, RRE_separate_mean=0.2253),
        ),
        *_KITTI_ROWS,
    ),
    ("3DMatch", "system"): (
        *_whole_systems(gate=0.962, official=0.956, geotransformer=0.920),
        Published("FCGF, 5000 points, RANSAC", _TABLE_2, {"RR": {None: 0.851}}),
    ),
    ("3DLoMatch", "system"): (
        *_whole_systems(gate=0.777, official=0.742, geotransformer=0.750),
        Published("FCGF, 5000 points, RANSAC", _GEOTRANSFORMER, {"RR": {None: 0.401}}),
    ),
    ("KITTI", "system"): _KITTI_ROWS,
}
