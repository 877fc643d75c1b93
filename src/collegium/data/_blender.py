"""The part that runs inside Blender's own environment, as a file: meshes come in on standard input, views are written.

    python _blender.py '{"size": 224, "views": 12, "elevation": 30, "samples": 8, "threads": 1, "scratch": "DIR"}'

One object is a line of JSON, `{"vertices": n, "corners": c, "faces": m, "files": {"0": PATH, …}}`, then its arrays as
raw bytes: float32 (n, 3), int32 (c,) and int32 (m,). The answers are lines of JSON: `{"ready": VERSION}` once, then
`{"view": k}` for each file that is in its place, and `{"done": true}` or `{"error": SENTENCE}` at the end of an object.

The numbers below were recovered from existing renders of the same meshes. With them the outlines agree to the pixel.
"""

import json
import math
import os
import struct
import sys
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import bpy
except ImportError:
    if __name__ == "__main__":
        raise
    bpy = None  # looked at from outside

DISTANCE = 3.1  # of the camera from the middle of the unit sphere
FIELD = 40.0  # of view, in degrees
GREY, ROUGHNESS = 0.5765, 0.6935
LAMPS = (  # azimuth, elevation, strength, whether it casts shadows
    (-61.0, 49.86, 1.867, True),
    (60.0, 35.43, 1.057, False),
    (181.0, 30.85, 0.966, False),
    (0.0, 90.0, 0.515, False),
)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Blender logs to standard output
    settings = json.loads(sys.argv[1])
    camera, material = make_scene(settings)
    scratch = os.path.join(settings["scratch"], str(os.getpid()))

    def answer(**facts: Any) -> None:
        answers.write(json.dumps(facts) + "\n")

    answer(ready=bpy.app.version_string)
    while line := sys.stdin.buffer.readline():
        task = json.loads(line)
        vertices, corners, sizes = (
            np.frombuffer(sys.stdin.buffer.read(4 * count), kind)
            for count, kind in ((3 * task["vertices"], "<f4"), (task["corners"], "<i4"), (task["faces"], "<i4"))
        )
        thing = add_object(vertices, corners, sizes, material)
        try:
            for k, path in task["files"].items():
                aim(camera, 360.0 * int(k) / settings["views"], settings["elevation"])
                save(path, *shoot(scratch + ".png"), scratch)
                answer(view=int(k))
        except BrokenPipeError:  # whoever asked for this is gone
            return
        except OSError as problem:
            answer(error=f"cannot write {path}: {problem.strerror or problem}")
        else:
            answer(done=True)
        bpy.data.meshes.remove(thing.data)


def make_scene(settings: dict[str, Any]) -> tuple[Any, Any]:
    """A camera, four suns and one material, rendered by Cycles on the processor; the camera and the material."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    scene.render.resolution_x = scene.render.resolution_y = settings["size"]
    scene.render.resolution_percentage = 100
    scene.render.film_transparent = True
    scene.render.threads_mode = "FIXED"
    scene.render.threads = settings["threads"]
    scene.render.use_persistent_data = True  # the views of an object share its geometry
    scene.render.dither_intensity = 0.0
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGBA"
    scene.render.image_settings.color_depth = "8"
    scene.render.image_settings.compression = 0  # read again at once
    scene.view_settings.view_transform = "Standard"
    scene.cycles.device = "CPU"
    scene.cycles.samples = settings["samples"]
    scene.cycles.use_adaptive_sampling = False
    scene.cycles.use_denoising = False
    scene.cycles.max_bounces = 0  # what no lamp reaches is black
    scene.cycles.seed = 0

    material = bpy.data.materials.new("grey")
    material.use_nodes = True
    surface = material.node_tree.nodes["Principled BSDF"]
    surface.inputs["Base Color"].default_value = (GREY, GREY, GREY, 1.0)
    surface.inputs["Roughness"].default_value = ROUGHNESS
    for azimuth, elevation, strength, shadow in LAMPS:
        sun = bpy.data.lights.new("sun", "SUN")
        sun.energy = strength
        sun.use_shadow = shadow
        lamp = bpy.data.objects.new("sun", sun)
        lamp.rotation_euler = turned(azimuth, elevation)
        scene.collection.objects.link(lamp)
    lens = bpy.data.cameras.new("camera")
    lens.angle = math.radians(FIELD)
    camera = bpy.data.objects.new("camera", lens)
    scene.collection.objects.link(camera)
    scene.camera = camera
    return camera, material


def turned(azimuth: float, elevation: float) -> tuple[float, float, float]:
    """What looks down is turned to look at the middle from there: azimuth 0 is on the x axis, 90 on the y axis."""
    return math.radians(90.0 - elevation), 0.0, math.radians(azimuth + 90.0)


def aim(camera: Any, azimuth: float, elevation: float) -> None:
    """Put the camera where it sees the middle from this azimuth and elevation."""
    around, up = math.radians(azimuth), math.radians(elevation)
    camera.location = (
        DISTANCE * math.cos(around) * math.cos(up),
        DISTANCE * math.sin(around) * math.cos(up),
        DISTANCE * math.sin(up),
    )
    camera.rotation_euler = turned(azimuth, elevation)


def add_object(vertices: NDArray[Any], corners: NDArray[Any], sizes: NDArray[Any], material: Any) -> Any:
    """Put a mesh into the scene."""
    mesh = bpy.data.meshes.new("mesh")
    mesh.vertices.add(len(vertices) // 3)
    mesh.vertices.foreach_set("co", vertices)
    mesh.loops.add(len(corners))
    mesh.loops.foreach_set("vertex_index", corners)
    mesh.polygons.add(len(sizes))
    mesh.polygons.foreach_set("loop_start", np.cumsum(sizes, dtype=np.int32) - sizes)
    mesh.shade_flat()
    mesh.validate()
    mesh.update(calc_edges=True)
    mesh.materials.append(material)
    thing = bpy.data.objects.new("mesh", mesh)
    bpy.context.scene.collection.objects.link(thing)
    return thing


def shoot(path: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Grey and alpha of what the camera sees, uint8 (size, size), the first row on top."""
    bpy.context.scene.render.filepath = path
    bpy.ops.render.render(write_still=True)
    image = bpy.data.images.load(path)
    image.colorspace_settings.name = "Non-Color"
    image.alpha_mode = "CHANNEL_PACKED"  # the bytes as they are in the file
    width, height = image.size
    pixels = np.empty(width * height * 4, np.float32)
    image.pixels.foreach_get(pixels)
    bpy.data.images.remove(image)
    os.remove(path)
    rows = np.rint(pixels.reshape(height, width, 4)[::-1] * 255).astype(np.uint8)
    return rows[..., 0], rows[..., 3]


def save(path: str, grey: NDArray[np.uint8], alpha: NDArray[np.uint8], scratch: str) -> None:
    """Write a PNG file of grey and alpha elsewhere, then put it in its place at once."""
    height, width = grey.shape
    rows = np.zeros((height, 1 + 2 * width), np.uint8)  # each begins with a 0: stored as it is
    rows[:, 1::2], rows[:, 2::2] = grey, alpha
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 4, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    with open(scratch, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, body in parts:
            file.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.replace(scratch, path)


if __name__ == "__main__":
    main()
