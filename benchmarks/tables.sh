#!/bin/bash
# Measure the tables of docs/benchmarks again, into docs/results; then write the pages:
#     benchmarks/tables.sh                    # outdated ones that need no GPU; continues if it was stopped
#     benchmarks/tables.sh cpu                # all that need no GPU: some three hours on two cores
#     benchmarks/tables.sh rooms maps-lidar   # the named ones
#     PYTHON=python3 benchmarks/tables.sh gpu # all that need a GPU
#
# DATA (default: data) is the folder of the clouds:
#     3dmatch/     fragments/ and benchmarks/, as docs/data.md lays them out
#     kitti/       sequences/ and poses/ of 90, a car, and 91, a handheld LiDAR
#     lidar/       city_10m, city_20m, city_30m, handheld_5m and handheld_8m: their scans with a pairs.txt each
#     finetuning/  handheld and car: their scans alone
#     pairs/       room_a.ply, room_b.ply, lidar_a.bin and lidar_b.bin, dense, and kitchen.npy, a whole sequence
# Tables all-eight-* need the other scenes of 3DMatch's test set, and are not measured again.
set -euo pipefail
cd "$(dirname "$0")/.."
DATA=${DATA:-data} PYTHON=${PYTHON:-.venv/bin/python} WORKERS=${WORKERS:-2}
CPU="rooms overlap lidar register-rooms register-lidar normals options peers files refusals forward-cpu maps-rooms
    maps-lidar maps-located maps-retrieval verdict-simulated verdict-real finetuning install"
GPU="pairs-cuda first batch-cuda forward operators training"

script() { "$PYTHON" "benchmarks/$1" "${@:2}" --out "docs/results/$table.json"; }
lists() { script lists.py --workers "$WORKERS" "$@"; }
questions() { "$PYTHON" -m pcreg.training.judge "${@:2}" --workers "$WORKERS" --out "$1"; }

on_3dmatch=(--run 3DMatch data=3dmatch --run 3DLoMatch data=3dlomatch --settings "data.root=$DATA/3dmatch" "seeds=[0]")
at_5000=("protocol.samples=[5000]" protocol.mutual=true estimator=ransac)
ROOM_PAIR=("room, 268 k and 281 k points" "$DATA/pairs/room_a.ply" "$DATA/pairs/room_b.ply")
LIDAR_PAIR=("LiDAR, twice 123 k points" "$DATA/pairs/lidar_a.bin" "$DATA/pairs/lidar_b.bin")
STRANGERS=("different rooms, 20 k points each" "$DATA"/3dmatch/fragments/{7-scenes-redkitchen,*hotel3}/cloud_bin_0.ply)

measure() {
    case $table in
    rooms) lists "${on_3dmatch[@]}" "${at_5000[@]}" protocol.distance=0.1 --columns "RR %" "RR rmse %" "FMR %" "IR %" ;;
    overlap) lists "${on_3dmatch[@]}" "${at_5000[@]}" protocol.distance=0.1 --by-overlap ;;
    lidar)
        local runs=()
        for beams in 1 4 8; do
            for name in city_10m city_20m city_30m handheld_5m handheld_8m; do
                runs+=(--run "$name, every ${beams}th beam" "data.root=$DATA/lidar/$name" "data.beams=$beams")
            done
        done
        lists "${runs[@]/every 1th beam/whole}" --settings data=folder data.voxel=0.3 "seeds=[0]" "${at_5000[@]}" \
            --columns "RR 2 m / 5 deg %" "RR 0.2 m / 1 deg %" "IR %" "IR one way %"
        ;;
    register-rooms)
        lists "${on_3dmatch[@]}" protocol=system --columns "RR 0.3 m / 15 deg %" "RR %" accepted "accepted right" \
            "refused right" "RTE m joint" "RRE deg joint"
        ;;
    register-lidar)
        local runs=() name beams city=("data.root=$DATA/lidar/city_20m")
        for name in city_10m city_20m handheld_5m handheld_8m; do
            for beams in 2 4 8; do
                runs+=(--run "$name, every ${beams}th beam of both" "data.root=$DATA/lidar/$name" "data.beams=$beams"
                    data.both_beams=true protocol.viewpoint=sensor)
            done
        done
        lists --run "city_20m, whole" "${city[@]}" protocol.viewpoint=sensor \
            --run "city_20m, every 4th beam" "${city[@]}" protocol.viewpoint=sensor data.beams=4 \
            --run "city_20m, moved by 10 m" "${city[@]}" data.moved=10 "${runs[@]/2th/2nd}" \
            --settings data=folder data.voxel=0.3 protocol=system "seeds=[0]" limit=20 \
            --columns "RR 2 m / 5 deg %" "RR 0.5 m / 1 deg %" "RR 0.2 m / 1 deg %" accepted "accepted right" \
            "refused right" "RTE m joint" "RRE deg joint"
        ;;
    normals)
        lists --run "as seen from the sensor" data.behind=0 --run "flipped in the source" data.behind=1 \
            --run "flipped in both" data.behind=2 --settings data=simulated data.device=cpu data.count=10 \
            data.seed=9000000 "seeds=[0]" "${at_5000[@]}" \
            --columns "RR 2 m / 5 deg %" "RR 0.2 m / 1 deg %" "FMR %" "IR %"
        ;;
    finetuning)
        local runs=() weights folder=outputs/finetuning
        local pairs=(data.minimum_distance=3 data.maximum_distance=15 data.neighbours=6 data.proposals=100)
        local handheld=("data.root=$DATA/finetuning/handheld" "data.cache=$folder/handheld")
        local car=("data.root=$DATA/finetuning/car" "data.cache=$folder/car")
        rm -rf "$folder"
        "$PYTHON" -m pcreg train experiment=finetune "${handheld[@]}" device=cpu workers=0 "out=$folder"
        for name in before mixed last; do
            weights=()
            [ $name = before ] || weights=("descriptor.weights=$folder/$name.safetensors")
            runs+=(--run "handheld, 50 pairs held out; $name" "${handheld[@]}" data.split=held_out "${pairs[@]}" limit=50
                "${weights[@]}"
                --run "car, 40 pairs 3 to 15 m apart; $name" "${car[@]}" "${pairs[@]}" limit=40 "${weights[@]}"
                --run "car, 10 m apart; $name" "data.root=$DATA/lidar/city_10m" "${weights[@]}"
                --run "car, 20 m apart; $name" "data.root=$DATA/lidar/city_20m" "${weights[@]}")
        done
        lists "${runs[@]}" --settings data=folder data.voxel=0.3 estimator=ransac "seeds=[0]" \
            --columns "RR 0.2 m / 1 deg %" "IR %"
        ;;
    options) script pairs.py --threedmatch "$DATA/3dmatch" --simulated 5 --ways ours gravity near nearer scale ;;
    peers)
        script pairs.py --threedmatch "$DATA/3dmatch" --lidar "$DATA"/lidar/{city_20m,handheld_8m} \
            --ways ours fpfh open3d kiss
        ;;
    files) script register.py files --pair "${ROOM_PAIR[@]}" --pair "${LIDAR_PAIR[@]}" --pair "${STRANGERS[@]}" --repeat 5 ;;
    refusals) script register.py refusals "$DATA/3dmatch" ;;
    forward-cpu)
        CUDA_VISIBLE_DEVICES="" script network.py forward "${STRANGERS[1]}" --voxel 0.025 --batch 1
        ;;
    maps-rooms) script map.py placed "$DATA"/3dmatch/fragments/* --together --workers "$WORKERS" ;;
    maps-lidar) script map.py placed "$DATA"/kitti/sequences/9? --every 2 --workers "$WORKERS" ;;
    maps-located) script map.py located "$DATA"/3dmatch/fragments/* ;;
    maps-retrieval)
        local folder=outputs/simulated-rooms
        [ -d $folder ] || "$PYTHON" benchmarks/map.py rooms $folder --count 48 --workers "$WORKERS"
        script map.py retrieval $folder/fragments/* --workers "$WORKERS"
        ;;
    verdict-simulated)
        questions outputs/simulated.npz simulated --scenes 8 --seed 9300000
        script confidence.py outputs/simulated.npz
        ;;
    verdict-real)
        local real=(3dmatch "$DATA/3dmatch" --true 0 --slid 0 --unrelated 300)
        questions outputs/stated.npz "${real[@]}" --mirrored 50
        questions outputs/estimated.npz "${real[@]}" --mirrored 0 --hidden 1
        script confidence.py outputs/stated.npz outputs/estimated.npz
        ;;
    install) make wheel; benchmarks/install.sh dist/*.whl | script report.py ;;
    pairs-cuda) script register.py pairs --pair "${ROOM_PAIR[@]}" --pair "${LIDAR_PAIR[@]}" --pair "${STRANGERS[@]}" ;;
    first) script register.py first --pair "${ROOM_PAIR[@]}" --pair "${LIDAR_PAIR[@]}" ;;
    batch-cuda) script register.py batch "$DATA"/3dmatch/fragments/*/cloud_bin_[0-6].ply ;;
    forward) script network.py forward "$DATA/pairs/kitchen.npy" --voxel 0.025 ;;
    operators) script network.py operators "$DATA/pairs/kitchen.npy" --voxel 0.025 ;;
    training) script training.py --steps 80 ;;
    *) echo "error: $table: none of $CPU $GPU" >&2; exit 2 ;;
    esac
}

case ${1:-older} in
older) set -- $("$PYTHON" benchmarks/pages.py | tr -d , | tr ' ' '\n' | grep -xF "$(printf '%s\n' $CPU)") ;;
cpu) set -- $CPU ;;
gpu) set -- $GPU ;;
esac
for table; do
    [ -d "$DATA" ] || { echo "error: $DATA: no such folder; name that of the clouds by DATA=FOLDER" >&2; exit 2; }
    echo "$table, $(date +%T)"
    TABLE_COMMAND="benchmarks/tables.sh $table" measure
done
"$PYTHON" benchmarks/pages.py
