"""Loaders: small files of the published layouts, as they should be and as they should not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fanlight_models.concepts.data import BadData, cub, images, table
from support.cub import ATTRIBUTES, mimic, write


def test_the_official_layout_of_cub(tmp_path: Path) -> None:
    found = cub.load(mimic(tmp_path))
    assert (
        found.classes == ("001.Bird_1", "002.Bird_2", "003.Bird_3")
        and found.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    )
    assert found.train.tolist() == [True, True, True, False] * 3
    assert found.attributes == ATTRIBUTES and found.certainties[0] == "not visible"
    assert found.boxes[3].tolist() == [5, 6, 30, 25]
    assert found.parts == ("back", "left eye")
    assert found.points[0, 0].tolist() == [10.5, 12.0] and np.isnan(found.points[:, 1]).all()
    assert found.certainty[1].tolist() == [3, 3, 3, 3, 1] and found.present[0].tolist() == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_labels_by_majority_or_by_image(tmp_path: Path) -> None:
    folder = mimic(tmp_path)
    lines = (folder / "attributes" / "image_attribute_labels.txt").read_text().splitlines()
    lines[2] = "1 3 0 4 1.0"  # one training photograph of the first class shows no crest
    write(folder / "attributes" / "image_attribute_labels.txt", "\n".join(lines))
    every = cub.load(folder)
    majority, image = every.labelled("majority", least=1), every.labelled("image", least=1)
    assert majority.names == image.names == ATTRIBUTES[:3]  # 4 is in no class, and what nobody saw is not counted
    assert majority.concepts[0].tolist() == [1, 0, 1] and image.concepts[0].tolist() == [1, 0, 0]
    assert every.labelled(least=2).names == ATTRIBUTES[1:3]
    assert "majority" in majority.rule and "each photograph" in image.rule
    with pytest.raises(BadData, match="No concept is left"):
        every.labelled(least=3)
    with pytest.raises(BadData, match="not by “vote”"):
        every.labelled("vote")


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("images.txt", None, "no file images.txt"),
        ("images.txt", "1 a.jpg\n3 b.jpg", "Line 2 of images.txt"),
        ("classes.txt", "", "classes.txt is empty"),
        ("image_class_labels.txt", "1 9", "number from 1 to 3"),
        ("image_class_labels.txt", "1 1\n2", "Line 2 of image_class_labels.txt has 1 fields"),
        ("train_test_split.txt", "99 1", "about photograph 99; there are 12"),
        ("train_test_split.txt", "1 1", "says nothing about photograph 2"),
        ("bounding_boxes.txt", "1 a b c d", "numbers are expected"),
        ("parts/part_locs.txt", "1 7 1.0 1.0 1", "number from 1 to 2"),
        ("attributes/image_attribute_labels.txt", "1 1 1 9 1.0", "number from 1 to 4"),
        ("attributes/image_attribute_labels.txt", "1 1 1", "has 3 fields; 4"),
        ("../attributes.txt", None, "no file attributes.txt"),
    ],
)
def test_a_folder_that_is_not_cub_is_refused_in_a_sentence(
    tmp_path: Path, file: str, text: str | None, said: str
) -> None:
    folder = mimic(tmp_path)
    if text is None:
        (folder / file).unlink()
    else:
        write(folder / file, text)
    with pytest.raises(BadData, match=said):
        cub.load(folder)


def test_a_photograph_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = mimic(tmp_path)
    (folder / "images" / "002.Bird_2" / "1.jpg").unlink()
    with pytest.raises(BadData, match="1 of 12 photographs are missing, the first is images/002.Bird_2/1.jpg"):
        cub.load(folder)


def folder_of_images(tmp_path: Path, text: str) -> Path:
    for name in ("a/1.png", "a/2.png", "b/1.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (8, 8)).save(tmp_path / name)
    write(tmp_path / "concepts.csv", text)
    return tmp_path


def test_a_csv_beside_a_folder_of_images(tmp_path: Path) -> None:
    folder = folder_of_images(
        tmp_path,
        "path,label,split,bill::flat,crest\na/1.png,duck,train,1,0.2\na/2.png,duck,test,100,0\nb/1.png,hawk,train,0,90\n",
    )
    found = images.load(folder)
    assert found.names == ("bill::flat", "crest") and found.classes == ("duck", "hawk")
    assert found.concepts.tolist() == [[0, 0], [1, 0], [0, 1]]  # per cent, since some are above 1
    assert found.train.tolist() == [True, False, True] and found.paths[2].name == "1.png"


def test_concepts_by_class_in_a_table_of_their_own(tmp_path: Path) -> None:
    folder = folder_of_images(tmp_path, "path,label\na/1.png,duck\na/2.png,duck\nb/1.png,hawk\n")
    write(folder / "classes.csv", "species,flat,hooked\nhawk,3.5,96\nduck,80,0\n")
    found = images.load(folder, classes="classes.csv", key="species")
    assert found.concepts.tolist() == [[1, 0], [1, 0], [0, 1]] and "per class" in found.rule
    write(folder / "classes.csv", "species,flat,hooked\nhawk,3.5,96\n")
    with pytest.raises(BadData, match="no row for the class “duck”"):
        images.load(folder, classes="classes.csv", key="species")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("path,label,crest\na/1.png,duck\n", "Row 2 of concepts.csv has 2 fields; the header has 3"),
        ("path,label,crest\n", "has no rows"),
        ("path,label,label\na/1.png,duck,1\n", "column “label” twice"),
        ("file,label,crest\na/1.png,duck,1\n", "no column “path”. Columns: file, label, crest"),
        ("path,label\na/1.png,duck\nb/1.png,hawk\n", "no columns with concepts"),
        ("path,label,crest\na/1.png,duck,yes\nb/1.png,hawk,0\n", "has “yes” as crest; a number"),
        ("path,label,crest\na/1.png,duck,inf\nb/1.png,hawk,0\n", "a finite number"),
        ("path,label,crest\na/1.png,duck,-1\nb/1.png,hawk,0\n", "Row 2 .* has -1 for crest"),
        ("path,label,crest\na/1.png,duck,\nb/1.png,hawk,0\n", "Row 2 .* says nothing about crest"),
        ("path,label,crest\na/1.png,duck,1\na/2.png,duck,0\n", "at least two classes"),
        ("path,label,crest\na/9.png,duck,1\nb/1.png,hawk,0\n", "there is no such file"),
        ("path,label,crest\n../x.png,duck,1\nb/1.png,hawk,0\n", "outside the folder"),
        ("path,label,split,crest\na/1.png,duck,later,1\nb/1.png,hawk,train,0\n", "Row 2 .* has the split “later”"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadData, match=said):
        images.load(folder_of_images(tmp_path, text))


def test_empty_fields_can_be_taken_from_the_class(tmp_path: Path) -> None:
    folder = folder_of_images(tmp_path, "path,label,crest\na/1.png,duck,1\na/2.png,duck,\nb/1.png,hawk,\n")
    assert images.load(folder, missing="class").concepts[:, 0].tolist() == [1, 1, 0]


def test_one_table(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    write(
        path,
        "age,pressure,smokes,fever,outcome,split\n20,100,0,1,well,train\n40,140,1,1,ill,train\n60,120,1,0,ill,test\n",
    )
    found = table.load(path, label="outcome", concepts=["smokes", "fever"])
    assert found.columns == ("age", "pressure") and found.classes == ("ill", "well")
    np.testing.assert_allclose(found.x, [[-1, -1], [1, 1], [3, 0]])  # type: ignore[arg-type] # scaled by the training rows
    assert found.concepts.tolist() == [[0, 1], [1, 1], [1, 0]] and found.labels.tolist() == [1, 0, 0]
    assert table.load(path, label="outcome", concepts=["fever"], features=["age"], share=0.5).columns == ("age",)


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("a,c,y\n1,0,u\n,1,v\n", {}, "Row 3 of t.csv has no a"),
        ("a,c,y\n1,0,u\n1,1,v\n", {"share": 1.0}, "“a” has the same value"),
        ("c,y\n0,u\n1,v\n", {}, "no column left for features"),
        ("a,c,y\n1,0,u\n2,1,v\n", {"features": ["c"]}, "“c” cannot be a feature"),
        ("a,c,y\n1,0,u\n2,1,v\n", {"concepts": []}, "named as a concept"),
        ("a,c,y,split\n1,0,u,test\n2,1,v,test\n", {}, "No row of t.csv is for training"),
    ],
)
def test_a_table_that_says_too_little_is_refused(tmp_path: Path, text: str, given: dict, said: str) -> None:
    write(tmp_path / "t.csv", text)
    with pytest.raises(BadData, match=said):
        table.load(tmp_path / "t.csv", **{"label": "y", "concepts": ["c"], **given})
