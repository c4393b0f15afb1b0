"""Renderer of the 3-D view: OpenGL into a picture, by PySide6's own modules.

Measured with 100,000 triangles in 800 by 600 pixels, software rendering (llvmpipe), processor time of a frame
and installed size:

| | ms, plain | ms, 4 samples | MB added |
|---|---|---|---|
| QtOpenGL of PySide6, this module | 34 | 97 | 0 |
| pyqtgraph.opengl 0.14 with PyOpenGL 3.1 | 31 | | 42 |
| VTK 9 | | 110 | 566 |

pyqtgraph also takes more than a second to import, and its widget makes Qt compose the whole window by OpenGL.
Here the picture is painted like any other, and OpenGL is used only while a 3-D view is visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QSize
from PySide6.QtGui import (
    QColor,
    QImage,
    QMatrix4x4,
    QOffscreenSurface,
    QOpenGLContext,
    QOpenGLFunctions,
    QSurfaceFormat,
    QVector3D,
)
from PySide6.QtOpenGL import (
    QOpenGLBuffer,
    QOpenGLFramebufferObject,
    QOpenGLFramebufferObjectFormat,
    QOpenGLShader,
    QOpenGLShaderProgram,
    QOpenGLTexture,
    QOpenGLVertexArrayObject,
)
from shiboken6 import VoidPtr

Style = Literal["lit", "flat", "picture"]

_STYLES: dict[Style, float] = {"flat": 0.0, "lit": 1.0, "picture": 2.0}
_FLOAT, _UNSIGNED, _LINES, _TRIANGLES = 0x1406, 0x1405, 0x0001, 0x0004
_COLOUR_AND_DEPTH, _DEPTH_TEST, _BLEND = 0x4100, 0x0B71, 0x0BE2
_SOURCE_ALPHA, _REST, _ONE = 0x0302, 0x0303, 1
_STRIDE = 40
_ATTRIBUTES = (("position", 0, 3), ("normal", 12, 3), ("colour", 24, 4))

_VERTEX = """
attribute highp vec3 position;
attribute highp vec3 normal;
attribute highp vec4 colour;
uniform highp mat4 matrix;
varying highp vec4 shade;
varying highp vec3 facing;
void main() {
    gl_Position = matrix * vec4(position, 1.0);
    shade = colour;
    facing = normal;
}
"""
_FRAGMENT = """
uniform highp float kind;
uniform highp float opacity;
uniform highp vec3 eye;
uniform sampler2D picture;
varying highp vec4 shade;
varying highp vec3 facing;
void main() {
    if (kind > 1.5) {
        highp vec3 grey = texture2D(picture, shade.xy).rgb;
        gl_FragColor = vec4(grey, opacity * min(1.0, 4.0 * max(grey.r, max(grey.g, grey.b))));
    } else {
        highp vec3 light = shade.rgb;
        if (kind > 0.5) {
            highp float facing_eye = abs(dot(normalize(facing), eye));
            light = light * (0.4 + 0.6 * facing_eye) + 0.15 * pow(facing_eye, 12.0);
        }
        gl_FragColor = vec4(light, shade.a);
    }
}
"""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles or lines.

    `corners`: (N, 10) float32, position in millimetres, normal, colour with opacity; for a picture, the
        colour is the position in it.
    `faces`: (M, 3) or (M, 2) uint32, triangles or lines.
    `picture`: for the style "picture".
    """

    corners: NDArray[np.float32]
    faces: NDArray[np.uint32]
    style: Style
    picture: QImage | None = None


def corners_of(
    positions: NDArray[np.floating],
    colours: NDArray[np.floating] | Sequence[float],
    normals: NDArray[np.floating] | None = None,
) -> NDArray[np.float32]:
    """Join positions, normals and colours (red, green, blue, opacity from 0 to 1) for a `Mesh`."""
    corners = np.zeros((len(positions), 10), dtype=np.float32)
    corners[:, :3], corners[:, 6:] = positions, colours
    if normals is not None:
        corners[:, 3:6] = normals
    return corners


class _Uploaded:
    """A mesh in the memory of the graphics card."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.corners = _buffer(QOpenGLBuffer.Type.VertexBuffer, mesh.corners)
        self.faces = _buffer(QOpenGLBuffer.Type.IndexBuffer, mesh.faces)
        self.texture = None
        if mesh.picture is not None:
            self.texture = QOpenGLTexture(mesh.picture, QOpenGLTexture.MipMapGeneration.DontGenerateMipMaps)
            self.texture.setMinMagFilters(QOpenGLTexture.Filter.Linear, QOpenGLTexture.Filter.Linear)
            self.texture.setWrapMode(QOpenGLTexture.WrapMode.ClampToEdge)

    def destroy(self) -> None:
        self.corners.destroy()
        self.faces.destroy()
        if self.texture is not None:
            self.texture.destroy()


def _buffer(kind: QOpenGLBuffer.Type, values: NDArray[np.generic]) -> QOpenGLBuffer:
    buffer = QOpenGLBuffer(kind)
    buffer.create()
    buffer.bind()
    content = np.ascontiguousarray(values).tobytes()
    buffer.allocate(content, len(content))
    return buffer


def _draw_mesh(uploaded: _Uploaded, program: QOpenGLShaderProgram, gl: QOpenGLFunctions) -> None:
    mesh = uploaded.mesh
    program.setUniformValue1f(program.uniformLocation("kind"), _STYLES[mesh.style])
    uploaded.corners.bind()
    uploaded.faces.bind()
    for name, offset, count in _ATTRIBUTES:
        location = program.attributeLocation(name)
        program.enableAttributeArray(location)
        program.setAttributeBuffer(location, _FLOAT, offset, count, _STRIDE)
    if uploaded.texture is not None:
        uploaded.texture.bind()
    gl.glDepthMask(mesh.style != "picture")  # crossing slices must not hide each other
    shape = _LINES if mesh.faces.shape[1] == 2 else _TRIANGLES
    gl.glDrawElements(shape, mesh.faces.size, _UNSIGNED, VoidPtr(0))  # type: ignore[arg-type]  # a pointer
    gl.glDepthMask(True)


class SurfaceRenderer:
    """Renderer of meshes into a picture.

    `parent`: owner of the OpenGL objects.
    """

    def __init__(self, parent: QObject) -> None:
        self._parent = parent
        self._context: QOpenGLContext | None = None
        self._surface: QOffscreenSurface | None = None
        self._program: QOpenGLShaderProgram | None = None
        self._vertex_array: QOpenGLVertexArrayObject | None = None
        self._target: QOpenGLFramebufferObject | None = None
        self._target_key: tuple[QSize, int] | None = None
        self._uploaded: dict[str, _Uploaded] = {}

    def _start(self) -> bool:
        """Create the OpenGL objects; return False if this computer has no OpenGL."""
        requested = QSurfaceFormat()
        requested.setDepthBufferSize(24)
        context = QOpenGLContext(self._parent)
        context.setFormat(requested)
        if not context.create():
            context.deleteLater()
            return False
        surface = QOffscreenSurface(None, self._parent)
        surface.setFormat(context.format())
        surface.create()
        if not surface.isValid() or not context.makeCurrent(surface):
            surface.destroy()
            return False
        program = QOpenGLShaderProgram(self._parent)
        kinds = QOpenGLShader.ShaderTypeBit
        if not (
            program.addShaderFromSourceCode(kinds.Vertex, _VERTEX)
            and program.addShaderFromSourceCode(kinds.Fragment, _FRAGMENT)
            and program.link()
        ):
            context.doneCurrent()
            surface.destroy()
            return False
        self._context, self._surface, self._program = context, surface, program
        self._vertex_array = QOpenGLVertexArrayObject(self._parent)
        self._vertex_array.create()
        return True

    def draw(
        self,
        meshes: Mapping[str, Mesh],
        size: QSize,
        matrix: NDArray[np.floating],
        eye: NDArray[np.floating],
        *,
        ground: QColor,
        opacity: float,
        samples: int,
    ) -> QImage | None:
        """Draw meshes in their order; None if this computer has no OpenGL.

        `size`: pixels.
        `matrix`: (4, 4), millimetres to clip coordinates.
        `eye`: (3,), unit vector to the eye, where the light comes from. `opacity`: opacity of pictures, 0 to
        1; nearly black pixels, such as air, are more transparent. `samples`: samples per pixel: 0, or 4 for
        antialiasing.
        """
        if self._context is None and not self._start():
            return None
        context, program = self._context, self._program
        assert context is not None
        assert self._surface is not None
        assert program is not None
        if not context.makeCurrent(self._surface):
            return None
        self._upload(meshes)
        target = self._prepare_target(size, samples)
        target.bind()
        gl = context.functions()
        gl.glViewport(0, 0, size.width(), size.height())
        gl.glClearColor(ground.redF(), ground.greenF(), ground.blueF(), 1.0)
        gl.glClear(_COLOUR_AND_DEPTH)
        gl.glEnable(_DEPTH_TEST)
        gl.glEnable(_BLEND)
        gl.glBlendFuncSeparate(_SOURCE_ALPHA, _REST, _ONE, _ONE)
        program.bind()
        program.setUniformValue(program.uniformLocation("matrix"), QMatrix4x4(*np.ravel(matrix).tolist()))
        program.setUniformValue(program.uniformLocation("eye"), QVector3D(*map(float, eye)))
        program.setUniformValue1f(program.uniformLocation("opacity"), opacity)
        if self._vertex_array is not None and self._vertex_array.isCreated():
            self._vertex_array.bind()
        for name in meshes:
            _draw_mesh(self._uploaded[name], program, gl)
        picture = target.toImage().convertToFormat(QImage.Format.Format_RGB32)
        target.release()
        context.doneCurrent()
        return picture

    def _upload(self, meshes: Mapping[str, Mesh]) -> None:
        for name, uploaded in tuple(self._uploaded.items()):
            if meshes.get(name) is not uploaded.mesh:
                uploaded.destroy()
                del self._uploaded[name]
        for name, mesh in meshes.items():
            if name not in self._uploaded:
                self._uploaded[name] = _Uploaded(mesh)

    def _prepare_target(self, size: QSize, samples: int) -> QOpenGLFramebufferObject:
        if self._target is None or self._target_key != (size, samples):
            requested = QOpenGLFramebufferObjectFormat()
            requested.setAttachment(QOpenGLFramebufferObject.Attachment.CombinedDepthStencil)
            requested.setSamples(samples)
            self._target, self._target_key = QOpenGLFramebufferObject(size, requested), (size, samples)
        return self._target

    def release(self) -> None:
        """Free all OpenGL objects; the next `draw` creates them again."""
        if self._context is None or self._surface is None:
            return
        if self._context.makeCurrent(self._surface):
            for uploaded in self._uploaded.values():
                uploaded.destroy()
            self._target = None
            if self._vertex_array is not None:
                self._vertex_array.destroy()
            if self._program is not None:
                self._program.removeAllShaders()
            self._context.doneCurrent()
        self._uploaded, self._target_key = {}, None
        for owned in (self._program, self._vertex_array, self._context, self._surface):
            if owned is not None:
                owned.deleteLater()
        self._program = self._vertex_array = self._context = self._surface = None
