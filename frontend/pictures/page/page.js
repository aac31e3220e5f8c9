"use strict";
const LEFT = 96, RIGHT = 24, TOP = 6, AXIS = 20, MEMORY = 92;

/** The columns of packed.h. */
function columnReader(bytes) {
  return ({at, count, tick}) => {
    const out = new Float64Array(count);
    let before = 0;
    for (let i = 0; i < count; ++i) {
      let byte = bytes[at++];
      if (byte < 128) {  // most are
        out[i] = before += byte & 1 ? -((byte + 1) >> 1) : byte >> 1;
        continue;
      }
      let value = byte & 127, factor = 128;
      do {
        byte = bytes[at++];
        value += (byte & 127) * factor;
        factor *= 128;
      } while (byte > 127);
      out[i] = before += value % 2 ? -(value + 1) / 2 : value / 2;
    }
    if (tick) for (let i = 0; i < count; ++i) out[i] *= tick;
    return out;
  };
}

/** The texts of packed.h. */
const textsOf = (bytes, {at, size}) => size ? new TextDecoder().decode(bytes.subarray(at, at + size - 1)).split("\0") : [];

async function unpack(data) {
  const text = atob(data.blob), raw = new Uint8Array(text.length);
  for (let i = 0; i < raw.length; ++i) raw[i] = text.charCodeAt(i);
  if (data.encoding === "raw") return raw;
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A picture of the data with its texts and columns read: start, end, and where bars share the height of their lane. */
function readPicture(picture, bytes) {
  const read = columnReader(bytes);
  for (const name of ["names", "places"]) picture[name] = textsOf(bytes, picture[name]);
  for (const [name, place] of Object.entries(picture.columns)) picture[name] = read(place);
  const count = picture.step.length;
  picture.start = new Float64Array(count);
  picture.end = new Float64Array(count);
  picture.lane = new Uint32Array(count);
  picture.slot = new Uint8Array(count);
  picture.slots = new Uint8Array(count).fill(1);
  picture.firstInput = new Uint32Array(count + 1);
  for (let e = 0; e < count; ++e) picture.firstInput[e + 1] = picture.firstInput[e] + picture.inputs[e];
  picture.lanes.forEach((lane, l) => {
    let at = 0;
    [lane.first, lane.last] = lane.entries;
    for (let e = lane.first; e < lane.last; ++e) {
      picture.start[e] = at += picture.step[e];
      picture.end[e] = at + picture.length[e];
      picture.lane[e] = l;
    }
    for (let e = lane.first; e < lane.last;) {
      let next = e + 1;
      const joins = () => next < lane.last && picture.group[e] && picture.group[next] === picture.group[e] && picture.length[e] > 0 &&
        picture.start[next] === picture.start[e] && picture.length[next] === picture.length[e];
      while (joins()) ++next;
      for (let k = e; k < next; ++k) {
        picture.slot[k] = k - e;
        picture.slots[k] = next - e;
      }
      e = next;
    }
  });
  picture.ranks.forEach((rank, r) => {
    for (let l = rank.lanes[0]; l < rank.lanes[1]; ++l) picture.lanes[l].rank = r;
  });
  return picture;
}

const PASSES = [""];  // by number; the data has the others

function labelOf(p, entry) {
  const o = p.operation[entry];
  if (!p.pass[o]) return p.names[p.name[o]];
  return PASSES[p.pass[o]] + " " + p.names[p.name[o]] + " mb[" + p.mb[o] + "]" + (p.slice[o] ? " slice[" + p.slice[o] + "]" : "") + (p.part[o] ? "#" + (p.part[o] - 1) : "");
}

function cellOf(p, entry) {
  const o = p.operation[entry], head = p.names[p.cell[o]];
  return p.pass[o] ? head + p.mb[o] + (p.slice[o] ? "/" + p.slice[o] : "") + (p.part[o] ? "#" + (p.part[o] - 1) : "") : head;
}

function timeText(p, time) {
  if (p.unit === "cost") return String(+time.toPrecision(6));
  const [scale, name] = time >= 1 || time === 0 ? [1, "s"] : time >= 1e-3 ? [1e3, "ms"] : time >= 1e-6 ? [1e6, "us"] : [1e9, "ns"];
  return +(time * scale).toPrecision(4) + " " + name;
}

function bytesText(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
  return +bytes.toPrecision(4) + " " + units[unit];
}

/** The first entry of a lane that ends after a time. */
function firstAfter(p, lane, time) {
  let low = lane.first, high = lane.last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (p.end[middle] > time) high = middle; else low = middle + 1;
  }
  return low;
}

function step(range, wanted) {
  const rough = range / wanted, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
}

/** One picture on the page. */
class Panel {
  constructor(page, picture) {
    this.page = page;
    this.p = picture;
    this.view = {from: 0, to: picture.makespan || 1};
    // The one whose memory is shown first: where most lives.
    const peak = picture.curves.some((curve) => curve.class) ? "peak_bytes" : "peak";
    this.rank = picture.ranks.reduce((best, rank, r) => rank[peak] > picture.ranks[best][peak] ? r : best, 0);
    this.hovered = -1;
    this.place();
    this.build();
  }

  /** Positions of lanes. */
  place() {
    const p = this.p, ranks = p.ranks.length, full = ranks <= 8 ? 26 : ranks <= 32 ? 18 : ranks <= 64 ? 10 : 5, gap = ranks <= 32 ? 2 : 1;
    let y = TOP;
    for (const rank of p.ranks) {
      rank.top = y;
      for (let l = rank.lanes[0]; l < rank.lanes[1]; ++l) {
        const lane = p.lanes[l];
        lane.top = y;
        lane.height = l === rank.lanes[0] ? full : lane.first === lane.last ? 0 : Math.max(4, full / 3);
        y += lane.height;
      }
      rank.height = y - rank.top;
      y += gap;
    }
    this.height = y;
  }

  build() {
    const panel = document.createElement("section");
    panel.className = "panel";
    panel.tabIndex = 0;
    const heading = document.createElement("h2"), figures = document.createElement("p"), stack = document.createElement("div");
    heading.textContent = this.p.title;
    figures.className = "figures";
    figures.textContent = this.p.figures;
    stack.className = "stack";
    this.bars = document.createElement("canvas");
    this.over = document.createElement("canvas");
    this.over.className = "over";
    this.memory = document.createElement("canvas");
    for (const canvas of [this.bars, this.over]) canvas.style.height = this.height + AXIS + "px";
    this.memory.style.height = this.p.curves.length ? MEMORY + "px" : "0";
    stack.append(this.bars, this.over);
    panel.append(heading, figures, stack, this.memory);
    document.getElementById("panels").append(panel);
    this.over.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    this.over.addEventListener("pointerdown", (event) => this.press(event));
    this.over.addEventListener("pointermove", (event) => this.move(event));
    this.over.addEventListener("pointerup", (event) => this.release(event));
    this.over.addEventListener("pointerleave", () => this.hover(-1));
    this.over.addEventListener("dblclick", () => this.page.setView(this, 0, this.page.longest(this)));
    panel.addEventListener("keydown", (event) => this.key(event));
    this.watch(panel);
  }

  get width() { return Math.max(1, this.bars.clientWidth - LEFT - RIGHT); }
  get scale() { return this.width / (this.view.to - this.view.from); }
  x(time) { return LEFT + (time - this.view.from) * this.scale; }
  time(x) { return this.view.from + (x - LEFT) / this.scale; }

  /** A canvas at the resolution of the screen. */
  begin(canvas) {
    const ratio = window.devicePixelRatio || 1, width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    return context;
  }

  draw() {
    this.waiting = false;
    const p = this.p, context = this.begin(this.bars), paint = this.page.paint, ratio = window.devicePixelRatio || 1;
    context.font = "11px system-ui,sans-serif";
    p.ranks.forEach((rank, r) => {
      context.fillStyle = paint.ground;
      context.fillRect(LEFT, rank.top, this.width, rank.height);
      const every = Math.ceil(13 / (rank.height + 1));
      if (r % every) return;
      context.fillStyle = r === this.rank ? paint.mark : paint.text;
      context.textAlign = "right";
      context.fillText(rank.name, LEFT - 6, rank.top + Math.min(rank.height / 2 + 4, rank.height + 3), LEFT - 8);
    });
    for (const lane of p.lanes) {
      if (!lane.height) continue;
      const first = firstAfter(p, lane, this.view.from);
      let last = first;
      while (last < lane.last && p.start[last] < this.view.to) ++last;
      if ((last - first) * 2.5 > this.width) this.drawFine(context, lane, first, last, ratio); else this.drawBars(context, lane, first, last);
    }
    this.drawAxis(context);
    this.drawOver();
    this.drawMemory();
  }

  /** Bars narrower than pixels: each pixel is the mixture of its bars. */
  drawFine(context, lane, first, last, ratio) {
    const p = this.p, width = Math.round(this.width * ratio), scale = width / (this.view.to - this.view.from), sums = new Float32Array(width * 4);
    const add = (pixel, share, colour) => {
      sums[pixel * 4] += share * colour[0];
      sums[pixel * 4 + 1] += share * colour[1];
      sums[pixel * 4 + 2] += share * colour[2];
      sums[pixel * 4 + 3] += share;
    };
    for (let e = first; e < last; ++e) {
      const colour = this.page.rgb[p.shade[p.operation[e]]], share = 1 / p.slots[e];
      const from = Math.max(0, (p.start[e] - this.view.from) * scale), to = Math.min(width, (p.end[e] - this.view.from) * scale);
      for (let pixel = Math.floor(from); pixel < to; ++pixel) add(pixel, share * (Math.min(to, pixel + 1) - Math.max(from, pixel)), colour);
    }
    const height = Math.max(1, Math.round(lane.height * ratio)), image = context.createImageData(width, height), ground = this.page.groundRgb;
    for (let pixel = 0; pixel < width; ++pixel) {
      const rest = Math.max(0, 1 - sums[pixel * 4 + 3]);
      for (let c = 0; c < 3; ++c) image.data[pixel * 4 + c] = sums[pixel * 4 + c] + rest * ground[c];
      image.data[pixel * 4 + 3] = 255;
    }
    for (let row = 1; row < height; ++row) image.data.copyWithin(row * width * 4, 0, width * 4);
    context.putImageData(image, Math.round(LEFT * ratio), Math.round(lane.top * ratio));
  }

  drawBars(context, lane, first, last) {
    const p = this.p;
    context.save();
    context.beginPath();
    context.rect(LEFT, lane.top, this.width, lane.height);
    context.clip();
    context.textAlign = "center";
    context.font = "10px ui-monospace,monospace";
    for (let e = first; e < last; ++e) {
      const x = this.x(p.start[e]), width = this.x(p.end[e]) - x, height = lane.height / p.slots[e], y = lane.top + height * p.slot[e], shade = p.shade[p.operation[e]];
      context.fillStyle = this.page.colours[shade];
      context.fillRect(x, y, width > 3 ? width - 0.7 : Math.max(width, 0.3), height > 6 ? height - 0.7 : height);
      if (height < 9 || width < 8) continue;
      // In a narrow bar the microbatch alone.
      const fits = (text) => text.length * 6.1 + 2 <= width;
      const cell = [cellOf(p, e), p.pass[p.operation[e]] ? String(p.mb[p.operation[e]]) : ""].find(fits);
      if (!cell) continue;
      context.fillStyle = shade % 2 ? "#222" : "#fff";
      context.fillText(cell, x + width / 2, y + height / 2 + 3.5);
    }
    context.restore();
  }

  drawAxis(context) {
    const paint = this.page.paint, y = this.height, each = step(this.view.to - this.view.from, Math.max(2, this.width / 90));
    context.strokeStyle = paint.line;
    context.fillStyle = paint.faint;
    context.textAlign = "center";
    context.font = "11px system-ui,sans-serif";
    context.beginPath();
    for (let i = Math.ceil(this.view.from / each); i * each <= this.view.to; ++i) {
      const x = this.x(i * each);
      context.moveTo(x, y);
      context.lineTo(x, y + 4);
      context.fillText(timeText(this.p, i * each), x, y + 15);
    }
    context.stroke();
  }

  middle(entry) {
    const lane = this.p.lanes[this.p.lane[entry]], height = lane.height / this.p.slots[entry];
    return lane.top + height * (this.p.slot[entry] + 0.5);
  }

  frame(context, entry, colour, width) {
    const p = this.p, lane = p.lanes[p.lane[entry]], height = lane.height / p.slots[entry], x = this.x(p.start[entry]);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(x, lane.top + height * p.slot[entry], Math.max(1, this.x(p.end[entry]) - x), height);
  }

  /** Parts that change with the pointer, and overlays of the bars. */
  drawOver() {
    const p = this.p, context = this.begin(this.over), paint = this.page.paint;
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, this.width, this.height);
    context.clip();
    if (this.page.on("messages")) {
      context.strokeStyle = paint.faint;
      context.globalAlpha = 0.6;
      context.lineWidth = 0.7;
      context.beginPath();
      for (let i = 0; i < p.from.length; ++i) {
        if (p.from[i] < 0 || p.to[i] < 0 || p.end[p.from[i]] > this.view.to || p.start[p.to[i]] < this.view.from) continue;
        context.moveTo(this.x(p.end[p.from[i]]), this.middle(p.from[i]));
        context.lineTo(this.x(p.start[p.to[i]]), this.middle(p.to[i]));
      }
      context.stroke();
      context.globalAlpha = 1;
    }
    if (this.page.on("critical")) {
      context.strokeStyle = paint.mark;
      context.lineWidth = 1.5;
      context.beginPath();
      for (const entry of p.critical) {
        const y = this.middle(entry);
        context.lineTo(this.x(p.start[entry]), y);
        context.lineTo(this.x(p.end[entry]), y);
      }
      context.stroke();
    }
    if (this.hovered >= 0) {
      const to = this.hovered;
      for (const from of this.readBy(to)) {
        context.strokeStyle = from === this.causeOf(to) ? paint.mark : paint.hover;
        context.lineWidth = 1.2;
        context.beginPath();
        context.moveTo(this.x(p.end[from]), this.middle(from));
        context.lineTo(this.x(p.start[to]), this.middle(to));
        context.stroke();
        this.frame(context, from, context.strokeStyle, 1);
      }
      this.frame(context, to, paint.hover, 2);
    }
    context.restore();
  }

  drawMemory() {
    const p = this.p, rank = p.ranks[this.rank];
    if (!p.curves.length || !rank) return;
    const context = this.begin(this.memory), paint = this.page.paint, curves = p.curves.slice(...rank.curves), bytes = curves.some((curve) => curve.class);
    const top = 16, bottom = MEMORY - 4, columns = Math.max(1, Math.floor(this.width)), total = new Float64Array(columns), layers = [];
    for (const curve of curves) {
      const layer = this.sampled(curve, columns);
      layer.forEach((value, i) => { total[i] += value; });
      layers.push({curve, upper: total.slice()});
    }
    const most = Math.max(bytes ? Math.max(rank.planned_bytes, rank.peak_bytes) : rank.peak, ...total, 1e-12), y = (value) => bottom - (value / most) * (bottom - top);
    context.font = "11px system-ui,sans-serif";
    context.fillStyle = paint.ground;
    context.fillRect(LEFT, top, this.width, bottom - top);
    for (let k = layers.length; k-- > 0;) {
      context.fillStyle = layers[k].curve.colour;
      context.beginPath();
      context.moveTo(LEFT, bottom);
      layers[k].upper.forEach((value, i) => { context.lineTo(LEFT + i, y(value)); context.lineTo(LEFT + i + 1, y(value)); });
      context.lineTo(LEFT + columns, bottom);
      context.fill();
    }
    let x = LEFT;
    const word = (text, colour) => {
      context.fillStyle = colour;
      context.fillText(text, x, 11);
      x += context.measureText(text).width + 14;
    };
    context.textAlign = "left";
    word("memory of " + rank.name, paint.text);
    word("peak " + (bytes ? bytesText(rank.peak_bytes) + ", planned " + bytesText(rank.planned_bytes) : +rank.peak.toPrecision(4) + " microbatches of a device share"), paint.faint);
    layers.forEach(({curve}) => { if (curve.class) word(curve.class, curve.colour); });
    context.fillStyle = paint.faint;
    context.textAlign = "right";
    context.fillText(bytes ? bytesText(most) : String(+most.toPrecision(4)), LEFT - 6, top + 8);
    context.fillText("0", LEFT - 6, bottom);
  }

  /** Per column of pixels the most that a curve reaches in it. */
  sampled(curve, columns) {
    const p = this.p, out = new Float64Array(columns), [first, last] = curve.points, scale = columns / (this.view.to - this.view.from);
    let low = first, high = last;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (p.curve_time[middle] > this.view.from) high = middle; else low = middle + 1;
    }
    let at = low, value = low > first ? p.curve_value[low - 1] : 0;
    for (let i = 0; i < columns; ++i) {
      out[i] = value;
      const end = this.view.from + (i + 1) / scale;
      for (; at < last && p.curve_time[at] < end; ++at) {
        value = p.curve_value[at];
        out[i] = Math.max(out[i], value);
      }
    }
    return out;
  }

  readBy(entry) {
    const p = this.p, read = new Set(p.input.subarray(p.firstInput[entry], p.firstInput[entry + 1]).map((distance) => entry - distance));
    if (this.causeOf(entry) >= 0) read.add(this.causeOf(entry));
    return read;
  }

  causeOf(entry) { return this.p.cause[entry] ? entry - this.p.cause[entry] : -1; }

  entryAt(x, y) {
    const p = this.p, time = this.time(x);
    if (x < LEFT) return -1;
    for (const lane of p.lanes) {
      if (y < lane.top || y >= lane.top + lane.height) continue;
      for (let e = firstAfter(p, lane, time); e < lane.last && p.start[e] <= time; ++e) {
        if (Math.floor(((y - lane.top) / lane.height) * p.slots[e]) === p.slot[e]) return e;
      }
    }
    return -1;
  }

  told(entry) {
    const p = this.p, rank = (e) => p.ranks[p.lanes[p.lane[e]].rank].name, place = p.place[p.operation[entry]], lane = p.lanes[p.lane[entry]];
    const first = entry === lane.first || p.start[entry] <= p.end[entry - 1], idle = first ? (entry === lane.first ? p.start[entry] : 0) : p.start[entry] - p.end[entry - 1];
    const lines = [rank(entry) + (lane.name ? ", " + lane.name : ""),
      timeText(p, p.start[entry]) + " to " + timeText(p, p.end[entry]) + ", takes " + timeText(p, p.length[entry])];
    const cause = this.causeOf(entry), why = this.page.why[p.why[entry]];
    lines.push(why + (cause >= 0 ? ": " + labelOf(p, cause) + (rank(cause) === rank(entry) ? "" : " of " + rank(cause)) + ", until " + timeText(p, p.end[cause]) : "") +
      (idle > 0 ? "; idle " + timeText(p, idle) : ""));
    const inputs = [...p.input.subarray(p.firstInput[entry], p.firstInput[entry + 1])].map((distance) => entry - distance);
    if (inputs.length) lines.push("reads " + inputs.slice(0, 6).map((e) => labelOf(p, e) + (rank(e) === rank(entry) ? "" : " of " + rank(e))).join(", ") +
      (inputs.length > 6 ? " and " + (inputs.length - 6) + " more" : ""));
    if (place >= 0) lines.push(p.places[place]);
    return [labelOf(p, entry), lines.join("\n")];
  }

  hover(entry, event) {
    const tip = document.getElementById("tip");
    if (entry !== this.hovered) {
      this.hovered = entry;
      this.drawOver();
    }
    tip.hidden = entry < 0;
    if (entry < 0) return;
    const [name, text] = this.told(entry), title = document.createElement("b");
    title.textContent = name;
    tip.replaceChildren(title, "\n" + text);
    if (!event) return;
    const {offsetWidth: width, offsetHeight: height} = tip;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + "px";
    tip.style.top = (event.clientY + 18 + height < innerHeight ? event.clientY + 18 : Math.max(4, event.clientY - height - 10)) + "px";
  }

  wheel(event) {
    event.preventDefault();
    const at = this.time(Math.max(LEFT, event.offsetX));
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.shift(event.deltaX / this.scale);
    this.zoom(Math.exp(event.deltaY * 0.002), at);
  }

  zoom(factor, at) {
    const least = this.page.longest(this) * 1e-6;
    const range = Math.max(least, (this.view.to - this.view.from) * factor);
    const from = at - ((at - this.view.from) / (this.view.to - this.view.from)) * range;
    this.page.setView(this, from, from + range);
  }

  shift(time) { this.page.setView(this, this.view.from + time, this.view.to + time); }

  press(event) {
    this.over.setPointerCapture(event.pointerId);
    this.dragged = {x: event.clientX, moved: false};
  }

  move(event) {
    if (!this.dragged) return this.hover(this.entryAt(event.offsetX, event.offsetY), event);
    const moved = event.clientX - this.dragged.x;
    if (!this.dragged.moved && Math.abs(moved) < 4) return;
    this.dragged = {x: event.clientX, moved: true};
    this.hover(-1);
    this.shift(-moved / this.scale);
  }

  release(event) {
    const clicked = this.dragged && !this.dragged.moved;
    this.dragged = null;
    if (!clicked) return;
    const rank = this.p.ranks.findIndex(({top, height}) => event.offsetY >= top && event.offsetY < top + height + 1);
    if (rank >= 0) this.rank = rank;
    this.draw();
  }

  key(event) {
    const range = this.view.to - this.view.from, middle = (this.view.to + this.view.from) / 2;
    if (event.key === "+" || event.key === "=" || event.key === "w") this.zoom(0.7, middle);
    else if (event.key === "-" || event.key === "s") this.zoom(1 / 0.7, middle);
    else if (event.key === "ArrowLeft" || event.key === "a") this.shift(-range * 0.15);
    else if (event.key === "ArrowRight" || event.key === "d") this.shift(range * 0.15);
    else if (event.key === "0") this.page.setView(this, 0, this.page.longest(this));
    else return;
    event.preventDefault();
  }
}

class Page {
  constructor(data, bytes) {
    this.why = data.why;
    if (PASSES.length === 1) PASSES.push(...data.passes);
    this.colours = data.shades.flatMap((shade) => shade.colours);
    this.rgb = this.colours.map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
    this.panels = data.pictures.map((picture) => new Panel(this, readPicture(picture, bytes)));
    this.legend(data);
    document.getElementById("scales").hidden = this.panels.length < 2;
    for (const name of ["critical", "messages"]) document.getElementById(name).addEventListener("change", () => this.panels.forEach((panel) => panel.drawOver()));
    document.getElementById("together").addEventListener("change", () => this.whole());
    document.getElementById("whole").addEventListener("click", () => this.whole());
    document.getElementById("theme").addEventListener("click", () => this.switchTheme());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("resize", () => this.draw());
    this.whole();
  }

  on(name) { return document.getElementById(name).checked; }

  /** Panels that count time alike move together. */
  moved(panel) { return this.on("together") ? this.panels.filter((other) => other.p.unit === panel.p.unit) : [panel]; }
  longest(panel) { return Math.max(...this.moved(panel).map((other) => other.p.makespan)) || 1; }

  setView(panel, from, to) {
    const longest = this.longest(panel), range = Math.min(to - from, longest);
    from = Math.max(0, Math.min(from, longest - range));
    for (const other of this.moved(panel)) other.view = {from, to: from + range};
    for (const other of this.moved(panel)) other.later();
  }

  whole() { this.panels.forEach((panel) => { panel.view = {from: 0, to: this.longest(panel)}; }); this.draw(); }

  legend(data) {
    const used = new Set(this.panels.flatMap((panel) => [...new Set(panel.p.shade)])), legend = document.getElementById("legend");
    data.shades.forEach((shade, i) => {
      if (!used.has(2 * i) && !used.has(2 * i + 1)) return;
      for (const tone of [0, 1]) {
        if (!used.has(2 * i + tone)) continue;
        const key = document.createElement("span");
        key.className = "key";
        key.style.background = shade.colours[tone];
        legend.append(key);
      }
      const word = document.createElement("span");
      word.className = "word";
      word.textContent = shade.text;
      legend.append(word);
    });
  }

  switchTheme() {
    const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.draw();
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    this.paint = Object.fromEntries(["text", "faint", "ground", "line", "mark", "hover"].map((name) => [name, style.getPropertyValue("--" + name).trim()]));
    this.groundRgb = this.paint.ground.length === 7 ? [1, 3, 5].map((at) => parseInt(this.paint.ground.slice(at, at + 2), 16)) : [236, 236, 236];
    this.panels.forEach((panel) => panel.draw());
  }
}

/** One drawing per frame, however many events ask for one. */
/** Draws before the next frame; a panel out of sight when it comes into sight. */
Panel.prototype.later = function () {
  if (this.waiting) return;
  this.waiting = true;
  if (!this.inSight) return;
  requestAnimationFrame(() => this.draw());
};

Panel.prototype.watch = function (element) {
  this.inSight = true;
  new IntersectionObserver((changes) => {
    this.inSight = changes.at(-1).isIntersecting;
    if (this.inSight && this.waiting) requestAnimationFrame(() => this.draw());
  }, {rootMargin: "200px"}).observe(element);
};

(async () => {
  const began = performance.now();
  const data = JSON.parse(document.getElementById("data").textContent);
  window.page = new Page(data, await unpack(data));
  document.body.dataset.drawn = Math.round(performance.now() - began);
})();
