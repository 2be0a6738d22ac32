// The report's charts and controls. Everything that is drawn comes from the payload (payload.rs); the
// tables beside the charts are static HTML. Charts are made when they scroll into view.
//
// `#theme=dark` or `light` forces a theme, `#render=all` draws every chart at once. For tests, the root
// element tells `data-ready="N charts"` and, if anything went wrong, `data-error`.
"use strict";
(() => {
  const root = document.documentElement;
  const fail = (what) => { root.dataset.error = `${root.dataset.error ?? ""}${what}\n`; };
  addEventListener("error", (e) => fail(e.message));
  addEventListener("unhandledrejection", (e) => fail(String(e.reason)));

  const payload = JSON.parse(document.getElementById("payload").textContent);
  const hash = new URLSearchParams(location.hash.slice(1));
  root.dataset.scripted = "";

  // ---- small tools ----------------------------------------------------------------------------

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };
  const finite = (x) => x !== null && Number.isFinite(x);
  const median = (values) => {
    const sorted = values.filter(finite).sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return sorted.length === 0 ? null : sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  };
  const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  const figure = (x) => {
    if (!finite(x)) return "–";
    const size = Math.abs(x);
    if (size >= 1000) return Math.round(x).toLocaleString("en-US");
    return String(Number(x.toPrecision(4)));
  };
  const percent = (x) => {
    const size = Math.abs(x);
    const whole = Number.isInteger(Number(size.toFixed(6)));
    const digits = whole || size >= 100 ? 0 : size < 1 ? 2 : 1;
    const sign = size < 1e-9 ? "" : x < 0 ? "−" : "+";
    return `${sign}${Number(size.toFixed(digits)).toLocaleString("en-US")} %`;
  };
  const change = (ratio) => percent(Number(((ratio - 1) * 100).toPrecision(3)));
  const factor = (ratio) => (ratio > 3 || ratio < 1 / 3 ? `× ${figure(Number(ratio.toPrecision(2)))}` : change(ratio));
  const inUnit = (unit) => (x) => {
    if (!finite(x)) return "–";
    if (unit === "fraction") return `${figure(x * 100)} %`;
    if (/^(bytes|B)(\/s)?$/.test(unit)) {
      const steps = ["B", "KiB", "MiB", "GiB", "TiB"];
      const step = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.abs(x) || 1) / 10)));
      return `${figure(x / 1024 ** step)} ${steps[step]}${unit.endsWith("/s") ? "/s" : ""}`;
    }
    return figure(x);
  };
  const points = (track) => {
    if (!track) return [];
    if (track.t) return track.v.map((v, i) => [track.t[i], v]);
    return track.v.map((v, i) => [Math.round((track.g[0] + track.g[1] * i) * 100) / 100, v]);
  };
  // 1, 2, 5, 10, 20 ... between two positive numbers; powers of ten alone where these would be too many.
  const oneTwoFive = (low, high) => {
    const ticks = [];
    if (!(low > 0 && Number.isFinite(high))) return ticks;
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade++) {
      for (const step of high / low > 2e4 ? [1] : [1, 2, 5]) ticks.push(Number(`${step}e${decade}`));
    }
    return ticks.filter((t) => t >= low && t <= high);
  };
  const SYMBOLS = ["circle", "rect", "diamond", "triangle", "roundRect", "pin"];

  // ---- theme ----------------------------------------------------------------------------------

  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  let theme = "auto";
  try { theme = localStorage.getItem("ceteris-theme") ?? "auto"; } catch { /* no storage: no memory */ }
  if (["light", "dark"].includes(hash.get("theme"))) theme = hash.get("theme");
  const show = () => {
    const dark = !printing && (theme === "dark" || (theme === "auto" && prefersDark.matches));
    root.dataset.shown = dark ? "dark" : "light";
  };
  const themeButton = make("button", { type: "button", onclick: () => {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme] ?? "auto";
    try { localStorage.setItem("ceteris-theme", theme); } catch { /* as above */ }
    retheme();
  } });
  const retheme = () => {
    show();
    themeButton.textContent = `theme: ${theme}`;
    for (const chart of charts) chart.draw();
  };
  const palette = () => {
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    return {
      ink: of("ink"), muted: of("muted"), line: of("line"), paper: of("paper"), shade: of("shade"),
      level: (i) => of(`l${i % 6}`),
    };
  };

  // ---- what all charts share ------------------------------------------------------------------

  const base = (c) => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: c.ink, fontSize: 12 },
    tooltip: {
      confine: true, backgroundColor: c.paper, borderColor: c.line, textStyle: { color: c.ink, fontSize: 12 },
      extraCssText: "box-shadow: 0 2px 8px rgba(0,0,0,.18); font-variant-numeric: tabular-nums;",
    },
  });
  const axis = (c, more = {}) => {
    const { axisLabel, nameTextStyle, ...rest } = more;
    return {
      axisLine: { onZero: false, lineStyle: { color: c.line } }, axisTick: { show: false },
      splitLine: { lineStyle: { color: c.line } },
      axisLabel: { color: c.muted, hideOverlap: true, ...axisLabel },
      nameTextStyle: { color: c.muted, fontSize: 12, ...nameTextStyle }, ...rest,
    };
  };
  const caption = (c, text) => axis(c, {
    name: text, nameLocation: "end", nameGap: 8, nameTextStyle: { align: "left" },
  });

  // A ratio on an axis: percent change, or, where effects are large, the logarithm of the ratio, since
  // half and double are equally far from no change. Labels say percent change either way.
  // Labels come in order of roundness and keep `apart` (a share of the axis) from each other.
  const ROUND = [1, 0.5, 2, 0.2, 5, 0.1, 10, 0.3, 3, 0.7, 1.5, 0.8, 1.25, 0.02, 50, 0.05, 20, 0.01, 100, 0.001, 1000];
  const ratioScale = (ratios, apart) => {
    const low = Math.min(...ratios), high = Math.max(...ratios);
    const linear = low > 0.6 && high < 1.7;
    const to = linear ? (r) => (r - 1) * 100 : (r) => Math.log(r);
    const room = Math.max((to(high) - to(low)) * 0.08, 1e-6);
    const min = to(low) - room, max = to(high) + room;
    if (linear) return { to, min, max, label: percent, ticks: undefined };
    const ticks = [];
    for (const x of ROUND.map(Math.log)) {
      const clear = ticks.every((t) => Math.abs(t - x) >= apart * (max - min));
      if (clear && x >= min && x <= max) ticks.push(x);
    }
    return { to, min, max, label: (x) => change(Math.exp(x)), ticks };
  };
  const ratioAxis = (c, scale) => axis(c, {
    type: "value", min: scale.min, max: scale.max,
    axisLabel: {
      formatter: scale.label, showMinLabel: Boolean(scale.ticks), showMaxLabel: Boolean(scale.ticks),
      ...(scale.ticks && { customValues: scale.ticks, hideOverlap: false }),
    },
    ...(scale.ticks && { axisTick: { show: false, customValues: scale.ticks } }),
  });
  const noChange = (c, scale, margin, key) => ({
    markLine: {
      silent: true, symbol: "none", label: { show: false },
      lineStyle: { color: c.muted, type: "solid", width: 1 }, data: [{ [key]: scale.to(1) }],
    },
    markArea: {
      silent: true, itemStyle: { color: c.shade },
      data: [[{ [key]: scale.to(1 / (1 + margin)) }, { [key]: scale.to(1 + margin) }]],
    },
  });
  const METRICS = { tps: "transactions per second", p95_ms: "p95 response time" };
  const METRIC_OF_RUN = { tps: "tps", p95_ms: "p95" };

  // ---- the charts: payload in, ECharts option out ----------------------------------------------

  const ends = (e) => [e.ratio, finite(e.low) && e.low > 0 ? e.low : null, finite(e.high) ? e.high : null];
  const span = (q, effects, apart) => ratioScale(
    [1 / (1 + q.margin * 1.5), 1 + q.margin * 1.5, ...effects.flatMap(ends).filter(finite)], apart);
  const effectText = (q, e) => `${escape(q.levels[e.level])} against ${escape(q.levels[0])}` +
    `${q.points[e.point] ? `, ${escape(q.points[e.point])}` : ""}<br>${METRICS[e.metric] ?? escape(e.metric)}: ` +
    `<b>${change(e.ratio)}</b> (${finite(e.low) ? change(e.low) : "−100 %"} … ` +
    `${finite(e.high) ? change(e.high) : "+∞"})<br>${escape(e.verdict)}`;

  function effects(q, ui, c) {
    if (q.points.length > 1) return effectsAlong(q, ui, c);
    const rows = q.effects.filter((e) => finite(e.ratio) && e.ratio > 0);
    const names = ui.width < 480 ? 88 : 150;
    const scale = span(q, rows, 62 / Math.max(120, ui.width - names - 40));
    const draw = (params, api) => {
      const e = rows[params.dataIndex];
      const [, y] = api.coord([0, params.dataIndex]);
      const at = (r) => api.coord([scale.to(r), params.dataIndex])[0];
      const box = params.coordSys;
      const [, low, high] = ends(e);
      const left = low === null ? box.x : at(low), right = high === null ? box.x + box.width : at(high);
      const style = { stroke: c.level(e.level), lineWidth: 2.5 };
      const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
      return { type: "group", children: [
        { type: "rect", shape: { x: left - 6, y: y - 16, width: right - left + 12, height: 32 }, style: { fill: "transparent" } },
        line(left, y, right, y),
        ...(low === null ? [] : [line(left, y - 8, left, y + 8)]),
        ...(high === null ? [] : [line(right, y - 8, right, y + 8)]),
        { type: "circle", shape: { cx: at(e.ratio), cy: y, r: 5 }, style: { fill: c.level(e.level), stroke: c.paper, lineWidth: 1.5 } },
        { type: "text", style: { text: change(e.ratio), x: at(e.ratio), y: y - 13, align: "center", verticalAlign: "bottom", fill: c.ink, fontSize: 13, fontWeight: 600 } },
      ] };
    };
    const several = q.levels.length > 2;
    return {
      ...base(c),
      height: Math.max(230, 70 + rows.length * 66),
      grid: { left: 8, right: 30, top: 10, bottom: 6, containLabel: true },
      tooltip: { ...base(c).tooltip, formatter: (p) => effectText(q, rows[p.dataIndex]) },
      xAxis: ratioAxis(c, scale),
      yAxis: axis(c, {
        type: "category", inverse: true, splitLine: { show: false },
        data: rows.map((e, i) => String(i)),
        axisLabel: { color: c.ink, interval: 0, lineHeight: 16, width: names, overflow: "break", hideOverlap: false,
          formatter: (_, i) => `${METRICS[rows[i].metric] ?? rows[i].metric}${several ? `\n${q.levels[rows[i].level]}` : ""}` },
      }),
      series: [{
        type: "custom", renderItem: draw, clip: false, encode: { x: 0, y: 1 },
        data: rows.map((e, i) => [scale.to(e.ratio), i]), ...noChange(c, scale, q.margin, "xAxis"),
      }],
    };
  }

  const sweepAxis = (q, c) => axis(c, {
    type: "category", data: q.values.map((v, i) => v ?? q.points[i]), splitLine: { show: false },
    name: q.axis ? q.axis.split(".").pop() : "", nameLocation: "middle", nameGap: 26,
  });
  // A band between two rows of values along a category axis.
  const band = (lows, highs, color, name) => ({
    type: "custom", name, color, silent: true, tooltip: { show: false }, clip: true, z: 1,
    data: lows.map((low, i) => [i, low, highs[i]]), encode: { x: 0, y: [1, 2] },
    renderItem: (params, api) => {
      if (params.dataIndex > 0) return null;
      const known = lows.map((low, i) => [i, low, highs[i]]).filter(([, low, high]) => finite(low) && finite(high));
      const shape = [...known.map(([i, , high]) => api.coord([i, high])), ...known.reverse().map(([i, low]) => api.coord([i, low]))];
      return { type: "polygon", shape: { points: shape }, style: { fill: color, opacity: 0.16 } };
    },
  });

  function effectsAlong(q, ui, c) {
    const rows = q.effects.filter((e) => e.metric === ui.metric && finite(e.ratio) && e.ratio > 0);
    const scale = span(q, rows, 0.11);
    const at = (level, point) => rows.find((e) => e.level === level && e.point === point);
    const series = q.levels.slice(1).flatMap((name, i) => {
      const level = i + 1;
      const of = (pick) => q.points.map((_, p) => { const e = at(level, p); return e ? pick(e) : null; });
      return [
        band(of((e) => (e.low > 0 ? scale.to(e.low) : scale.min)), of((e) => (finite(e.high) ? scale.to(e.high) : scale.max)), c.level(level), name),
        { type: "line", name, data: of((e) => scale.to(e.ratio)), color: c.level(level), symbol: SYMBOLS[level % 6], symbolSize: 8,
          lineStyle: { width: 2 }, z: 3, level, ...(i === 0 ? noChange(c, scale, q.margin, "yAxis") : {}) },
      ];
    });
    const name = { name: `change of ${METRICS[ui.metric]}`, nameGap: 10, nameTextStyle: { color: c.muted, fontSize: 12, align: "left" } };
    return {
      ...base(c), grid: { left: 8, right: 16, top: 52, bottom: 30, containLabel: true }, legend: legend(q.levels.slice(1), c),
      tooltip: { ...base(c).tooltip, formatter: (p) => effectText(q, at(q.levels.indexOf(p.seriesName), p.dataIndex)) },
      xAxis: sweepAxis(q, c), yAxis: { ...ratioAxis(c, scale), ...name }, series,
    };
  }

  const legend = (names, c) => ({
    data: names, top: 0, left: 0, type: "scroll", icon: "roundRect", itemWidth: 12, itemHeight: 12, itemGap: 16,
    textStyle: { color: c.ink, fontSize: 12 }, inactiveColor: c.line,
  });

  function sweep(q, ui, c) {
    const pick = METRIC_OF_RUN[ui.metric];
    const series = q.levels.flatMap((name, level) => {
      const cells = q.points.map((_, p) => q.runs.filter((r) => r.level === level && r.point === p).map((r) => r[pick]).filter(finite));
      return [
        band(cells.map((v) => (v.length ? Math.min(...v) : null)), cells.map((v) => (v.length ? Math.max(...v) : null)), c.level(level), name),
        { type: "line", name, data: cells.map(median), color: c.level(level), symbol: SYMBOLS[level % 6], symbolSize: 8, lineStyle: { width: 2 }, z: 3 },
      ];
    });
    return {
      ...base(c), grid: { left: 8, right: 16, top: 52, bottom: 30, containLabel: true }, legend: legend(q.levels, c),
      tooltip: { ...base(c).tooltip, trigger: "axis", formatter: (all) => [escape(q.points[all[0].dataIndex]),
        ...all.filter((p) => p.seriesType === "line").map((p) => `${p.marker}${escape(p.seriesName)}: <b>${figure(p.value)}</b>`)].join("<br>") },
      xAxis: sweepAxis(q, c),
      yAxis: { ...caption(c, ui.metric === "tps" ? "transactions per second" : "p95, ms"), type: "value", min: 0, axisLabel: { color: c.muted, formatter: figure } },
      series,
    };
  }

  function runs(q, ui, c) {
    const pick = METRIC_OF_RUN[ui.metric];
    const here = q.runs.filter((r) => r.point === ui.point);
    const blocks = [...new Set(here.map((r) => r.block))].sort((a, b) => a - b);
    const perBlock = blocks.map((block) => ({
      type: "line", name: `block ${block + 1}`, connectNulls: true, lineStyle: { color: c.muted, width: 1, opacity: Math.max(0.15, Math.min(0.6, 10 / blocks.length)) },
      emphasis: { lineStyle: { width: 2.5, opacity: 1, color: c.ink } }, triggerLineEvent: true, z: 2,
      data: q.levels.map((_, level) => {
        const run = here.find((r) => r.block === block && r.level === level);
        return run && finite(run[pick])
          ? { value: run[pick], symbol: SYMBOLS[level % 6], symbolSize: blocks.length > 30 ? 6 : 9, itemStyle: { color: c.level(level), borderColor: c.paper, borderWidth: 1 } }
          : { value: null };
      }),
    }));
    const medians = q.levels.map((_, level) => median(here.filter((r) => r.level === level).map((r) => r[pick])));
    return {
      ...base(c), grid: { left: 8, right: 16, top: 30, bottom: 6, containLabel: true },
      tooltip: { ...base(c).tooltip, formatter: (p) => (p.seriesName === "median" ? `median of ${escape(q.levels[p.dataIndex])}` :
        p.dataIndex === undefined ? escape(p.seriesName) : `${escape(p.seriesName)}, ${escape(q.levels[p.dataIndex])}`) +
        (finite(p.value) ? `<br><b>${figure(p.value)}</b> ${ui.metric === "tps" ? "tps" : "ms"}` : "") },
      xAxis: axis(c, { type: "category", data: q.levels, splitLine: { show: false }, axisLabel: {
        color: c.ink, interval: 0, hideOverlap: false, overflow: "truncate", width: Math.max(60, Math.floor(ui.width / q.levels.length) - 30) } }),
      yAxis: { ...caption(c, ui.metric === "tps" ? "transactions per second" : "p95, ms"), type: "value", scale: true, axisLabel: { color: c.muted, formatter: figure } },
      series: [...perBlock, { type: "scatter", name: "median", z: 1, symbol: "rect", symbolSize: [48, 3],
        data: medians.map((value, level) => ({ value, itemStyle: { color: c.level(level), opacity: 0.8 } })) }],
    };
  }

  function time(q, ui, c) {
    const panels = [
      { set: q.series.find((s) => s.role === "throughput"), title: "transactions per second" },
      { set: q.series.find((s) => s.role === ui.percentile), title: `${ui.percentile} response time, ms` },
      { set: q.series[ui.evidence], title: "" },
    ].filter((p) => p.set);
    const height = ui.height - 34 - 62;
    const gap = 46, each = (height - gap * (panels.length - 1)) / panels.length;
    const option = {
      ...base(c), legend: legend(q.levels, c), grid: [], xAxis: [], yAxis: [], series: [],
      axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: c.muted } },
      tooltip: { ...base(c).tooltip, trigger: "axis", formatter: (all) => {
        const shown = all.filter((p) => String(p.seriesId).startsWith("median"));
        if (!shown.length) return "";
        const { unit } = panels[shown[0].axisIndex]?.set ?? {};
        return [`${figure(shown[0].axisValue)} s`, ...shown.map((p) => `${p.marker}${escape(p.seriesName)}: <b>${inUnit(unit)(p.value[1])}</b>`)].join("<br>");
      } },
      dataZoom: [
        { type: "slider", xAxisIndex: panels.map((_, i) => i), bottom: 6, height: 22, borderColor: c.line, filterMode: "none", showDataShadow: false,
          textStyle: { color: c.muted }, fillerColor: c.shade, handleStyle: { color: c.paper, borderColor: c.muted },
          moveHandleStyle: { color: c.muted, opacity: 0.5 }, labelFormatter: (x) => `${Math.round(x)} s`, backgroundColor: "transparent" },
        ...(matchMedia("(hover: hover)").matches ? [{ type: "inside", xAxisIndex: panels.map((_, i) => i), filterMode: "none",
          zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, moveOnMouseMove: true }] : []),
      ],
    };
    const perLevel = q.runs.filter((r) => r.point === ui.point).length / q.levels.length;
    const faint = Math.max(0.07, Math.min(0.34, 5 / perLevel));
    let first = Infinity, last = -Infinity;
    panels.forEach(({ set, title }, panel) => {
      const text = title || `${set.name}${set.unit && set.unit !== "fraction" ? `, ${set.unit}` : ""}`;
      option.grid.push({ left: 62, right: 12, top: 52 + panel * (each + gap), height: each - 18 });
      option.xAxis.push(axis(c, { type: "value", gridIndex: panel, splitLine: { show: false }, axisLabel: { show: panel === panels.length - 1, formatter: (x) => `${String(x).replace("-", "−")} s` } }));
      option.yAxis.push({ ...caption(c, text), type: "value", gridIndex: panel, min: (e) => Math.min(0, e.min), splitNumber: 3,
        axisLabel: { color: c.muted, formatter: inUnit(set.unit) } });
      q.runs.forEach((run, i) => {
        if (run.point !== ui.point) return;
        const data = points(set.tracks[i]);
        if (data.length) { first = Math.min(first, data[0][0]); last = Math.max(last, data[data.length - 1][0]); }
        option.series.push({
          type: "line", id: `run-${panel}-${i}`, name: q.levels[run.level], xAxisIndex: panel, yAxisIndex: panel, data, showSymbol: false,
          color: c.level(run.level), lineStyle: { width: 1, opacity: faint }, z: 2, triggerLineEvent: true,
          emphasis: { lineStyle: { width: 2, opacity: 1 } }, sampling: undefined,
        });
      });
      set.medians.filter((m) => m.point === ui.point).forEach((m) => option.series.push({
        type: "line", id: `median-${panel}-${m.level}`, name: q.levels[m.level], xAxisIndex: panel, yAxisIndex: panel, data: points(m.track),
        showSymbol: false, color: c.level(m.level), lineStyle: { width: 2.4 }, z: 4, silent: true,
      }));
    });
    panels.forEach((_, panel) => {
      const bearer = option.series.find((s) => s.xAxisIndex === panel);
      if (bearer && first < 0) bearer.markArea = { silent: true, itemStyle: { color: c.shade },
        label: { color: c.muted, position: "insideTop", show: panel === 0 && first / (last - first) < -0.06 },
        data: [[{ xAxis: Math.floor(first), name: "warm-up" }, { xAxis: 0 }]] };
    });
    for (const x of option.xAxis) { x.min = Math.floor(first); x.max = Math.ceil(last); }
    return option;
  }

  function latency(q, ui, c) {
    const cells = q.latency.filter((cell) => cell.point === ui.point);
    const values = cells.flatMap((cell) => cell.points.map(([, ms]) => ms)).filter((ms) => ms > 0);
    const least = Math.min(...values), greatest = Math.max(...values);
    const around = oneTwoFive(least / 10, greatest * 10);
    const low = around.filter((t) => t <= least).at(-1), high = around.find((t) => t >= greatest);
    const ticks = around.filter((t) => t >= low && t <= high);
    const most = Math.max(1, ...cells.map((cell) => cell.points.at(-1)?.[0] ?? 1));
    const nines = Array.from({ length: Math.floor(most) + 1 }, (_, i) => i);
    const label = (x) => (x === 0 ? "0" : `${(100 - 100 * 10 ** -x).toFixed(Math.max(0, Math.round(x) - 2))} %`);
    return {
      ...base(c), grid: { left: 8, right: 16, top: 56, bottom: 30, containLabel: true }, legend: legend(q.levels, c),
      tooltip: { ...base(c).tooltip, trigger: "axis", formatter: (all) => [
        `p${Number((100 - 100 * 10 ** -all[0].axisValue).toPrecision(Math.max(3, Math.ceil(all[0].axisValue) + 1)))}`,
        ...all.map((p) => `${p.marker}${escape(p.seriesName)}${p.seriesId.endsWith("service") ? " (service)" : ""}: <b>${figure(p.value[1])}</b> ms`)].join("<br>") },
      xAxis: axis(c, { type: "value", min: 0, max: most, name: "percentile", nameLocation: "middle", nameGap: 26,
        axisTick: { show: false, customValues: nines }, axisLabel: { customValues: nines, formatter: label } }),
      yAxis: { ...caption(c, "response time, ms (log)"), type: "log", min: low, max: high,
        axisTick: { show: false, customValues: ticks }, axisLabel: { color: c.muted, formatter: figure, customValues: ticks, hideOverlap: true } },
      series: cells.map((cell) => ({
        type: "line", id: `${cell.level}-${cell.clock}`, name: q.levels[cell.level], data: cell.points.filter(([, ms]) => ms > 0),
        showSymbol: false, color: c.level(cell.level), lineStyle: { width: 2, type: cell.clock === "service" ? "dashed" : "solid" },
      })),
    };
  }

  // ---- controls -------------------------------------------------------------------------------

  const choice = (label, options, current, choose) => {
    const group = make("span", { class: "choice", role: "group", "aria-label": label });
    const mark = (value) => { for (const b of group.children) b.setAttribute("aria-pressed", String(b.value === value)); };
    for (const [value, text] of options) {
      group.append(make("button", { type: "button", value, onclick: () => { mark(value); choose(value); } }, text));
    }
    mark(current);
    return group;
  };
  const select = (label, options, current, choose) => {
    const list = make("select", { onchange: (e) => choose(Number(e.target.value)) });
    for (const [group, entries] of options) {
      const parent = group ? make("optgroup", { label: group }) : list;
      for (const [value, text] of entries) parent.append(make("option", { value }, text));
      if (group) list.append(parent);
    }
    list.value = String(current);
    return make("label", {}, `${label} `, list);
  };
  // Choices that concern a whole question; its charts redraw together.
  const chosen = payload.questions.map((q) => ({
    point: q.points.length - 1, metric: "tps", percentile: "p95",
    evidence: q.series.findIndex((s) => s.role === "evidence"),
  }));
  const redraw = (index) => { for (const chart of charts) if (chart.question === index) chart.draw(); };

  function controls(kind, index) {
    const q = payload.questions[index], ui = chosen[index], out = [];
    const set = (key) => (value) => {
      ui[key] = value;
      for (const list of document.querySelectorAll(`[data-point-of="${index}"] select`)) list.value = String(ui.point);
      for (const b of document.querySelectorAll(`[data-metric-of="${index}"] button`)) b.setAttribute("aria-pressed", String(b.value === ui.metric));
      redraw(index);
    };
    if (q.points.length > 1 && ["runs", "time", "latency"].includes(kind)) {
      const at = select("at", [[null, q.points.map((label, i) => [i, label])]], ui.point, set("point"));
      at.dataset.pointOf = index;
      out.push(at);
    }
    if (kind === "runs" || kind === "sweep") {
      const metric = choice("metric", [["tps", "throughput"], ["p95_ms", "p95"]], ui.metric, set("metric"));
      metric.dataset.metricOf = index;
      out.push(metric);
    }
    if (kind === "time") {
      out.push(choice("percentile", [["p95", "p95"], ["p99", "p99"]], ui.percentile, set("percentile")));
      const groups = new Map();
      q.series.forEach((s, i) => {
        if (s.role !== "evidence") return;
        const group = s.telling ? "moved with the level, and not as throughput did" : s.name.split(".").slice(0, s.name.startsWith("server.status") ? 2 : 1).join(" ");
        if (!groups.has(group)) groups.set(group, []);
        groups.get(group).push([i, s.moved ? `${s.name}  ${factor(s.moved)}` : s.name]);
      });
      if (groups.size) out.push(select("also show", [...groups], ui.evidence, set("evidence")));
      out.push(make("span", { class: "hover", "aria-live": "off" }));
    }
    return out;
  }

  // ---- drawing when seen ----------------------------------------------------------------------

  const kinds = { effects, sweep, runs, time, latency };
  const charts = [];
  let drawn = 0;
  function mount(node) {
    if ("mounted" in node.dataset) return;
    node.dataset.mounted = "";
    const kind = node.dataset.chart, question = Number(node.dataset.question);
    const q = payload.questions[question];
    const instance = echarts.init(node, null, { renderer: kind === "time" ? "canvas" : "svg" });
    const draw = () => {
      const option = kinds[kind](q, { ...chosen[question], width: instance.getWidth(), height: instance.getHeight() }, palette());
      if (option.height) {
        node.style.height = `${option.height}px`;
        delete option.height;
        instance.resize();
      }
      const zoom = instance.getOption()?.dataZoom?.[0];
      if (zoom && option.dataZoom) for (const z of option.dataZoom) { z.start = zoom.start; z.end = zoom.end; }
      const selected = instance.getOption()?.legend?.[0]?.selected;
      if (selected && option.legend) option.legend.selected = selected;
      instance.setOption(option, { notMerge: true });
    };
    draw();
    if (kind === "time") {
      const hint = node.parentElement.querySelector(".hover");
      const name = (id) => { const run = q.runs[Number(id.split("-")[2])]; return `block ${run.block + 1}, ${q.levels[run.level]}: ${figure(run.tps)} tps`; };
      instance.on("mouseover", { seriesType: "line" }, (e) => { if (e.seriesId?.startsWith("run-")) hint.textContent = name(e.seriesId); });
      instance.on("mouseout", () => { hint.textContent = ""; });
    }
    charts.push({ question, draw, instance, node });
    drawn += 1;
    root.dataset.ready = `${drawn} charts`;
  }

  const places = [...document.querySelectorAll("[data-chart]")];
  const mountAll = () => places.forEach(mount);
  for (const place of places) {
    const box = place.parentElement.querySelector(".controls");
    box.append(...controls(place.dataset.chart, Number(place.dataset.question)));
    if (!box.children.length && place.dataset.chart !== "effects") box.remove();
  }
  document.querySelector(".brand").append(themeButton);
  retheme();
  prefersDark.addEventListener("change", retheme);

  if (hash.get("render") === "all" || !("IntersectionObserver" in window)) mountAll();
  else {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); mount(entry.target); }
    }, { rootMargin: "400px" });
    places.forEach((place) => seen.observe(place));
  }
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { if (!printing) for (const chart of charts) { chart.instance.resize(); chart.draw(); } });
  });

  // Paper: light, everything drawn at the width of a page (A4 less its margins, in CSS pixels).
  const PAPER_WIDTH = 687;
  let opened = [];
  addEventListener("beforeprint", () => {
    printing = true;
    mountAll();
    opened = [...document.querySelectorAll("details[data-print]:not([open])")];
    for (const details of opened) details.open = true;
    show();
    for (const chart of charts) { chart.instance.resize({ width: PAPER_WIDTH }); chart.draw(); }
  });
  addEventListener("afterprint", () => {
    printing = false;
    for (const details of opened) details.open = false;
    for (const chart of charts) chart.instance.resize({ width: "auto" });
    retheme();
  });

  // ---- the table of observed names ------------------------------------------------------------

  for (const box of document.querySelectorAll("[data-filter]")) {
    const rows = [...document.getElementById(box.dataset.filter).tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const count = make("span", { class: "note", "aria-live": "polite" });
    const differing = make("input", { type: "checkbox", oninput: () => apply() });
    const words = make("input", { type: "search", placeholder: "innodb flush", oninput: () => apply() });
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        row.hidden = !(wanted.every((w) => texts[i].includes(w)) && (!differing.checked || row.classList.contains("differs")));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = `${shown} of ${rows.length}`;
    };
    box.append(make("label", {}, "filter ", words), make("label", {}, differing, " only what differs between levels"), count);
    apply();
  }
  root.dataset.ready = `${drawn} charts`;
})();
