"""Is the picture more red, green or blue? A model of your own in one file, its weights written down by hand."""

import torch

from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier


def load():
    redness = torch.nn.Conv2d(3, 3, kernel_size=1)  # per pixel: twice one colour minus the two others
    redness.weight.data = (3 * torch.eye(3) - torch.ones(3, 3)).view(3, 3, 1, 1)
    redness.bias.data.zero_()
    net = torch.nn.Sequential(redness, torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    return TorchImageClassifier(
        net,
        classes=["red", "green", "blue"],
        preprocessing=Preprocessing(size=(64, 64)),
        features_at="1",
        name="Colours",
    )
