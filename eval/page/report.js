"use strict";
/* The viewer. Every text of a run becomes a text node, never markup. Data blocks are parsed when they are needed. */
(() => {
  const PER_PAGE = 30;
  const MOST_CELLS = 4e6; /* of a word diff's table: above it the notes are shown without one */
  const GOLD = 1, OLD = 2;
  const byId = (id) => document.getElementById(id);
  const parsed = new Map();
  const block = (id) => {
    if (!parsed.has(id)) parsed.set(id, JSON.parse(byId(id).textContent));
    return parsed.get(id);
  };
  const el = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const words = (text) => text.replaceAll("_", " ");
  const lostWord = (word) => word === "stale" ? "kept stale" : words(word);
  const chip = (word) =>
    el("span", { class: "chip" },
      el("span", { class: "swatch c-" + word.toLowerCase().replace(/[^a-z0-9]/g, "-"), "aria-hidden": "true" }), words(word));

  for (const section of document.querySelectorAll("main > section")) {
    byId("nav").append(el("a", { href: "#" + section.id }, section.querySelector("h2").textContent));
  }
  const ready = () => { document.documentElement.dataset.readyMs = String(Math.round(performance.now())); };
  const index = block("index");
  if (!index.rows.length) { ready(); return; }
  const [RUN, VERDICT, LOST, ID, SAMPLE, QUESTION, GOLDEN, ANSWER] = [0, 1, 2, 3, 4, 5, 6, 7];
  const state = { matches: [], page: 0, row: -1, turn: 0, turns: 1 };
  const fields = ["run", "verdict", "lost", "text"].map((name) => byId("f-" + name));
  let lowered = null;
  const narrow = window.matchMedia("(max-width: 760px)");

  function filter() {
    const [run, verdict, lost, text] = fields.map((field) => field.value);
    const asked = text.trim().toLowerCase();
    if (asked && !lowered) {
      lowered = index.rows.map((row) => [row[ID], row[QUESTION], row[GOLDEN], row[ANSWER]].join("\n").toLowerCase());
    }
    state.matches = [];
    index.rows.forEach((row, number) => {
      if ((run === "" || row[RUN] === Number(run)) && (!verdict || row[VERDICT] === verdict) &&
        (!lost || row[LOST] === lost) && (!asked || lowered[number].includes(asked))) state.matches.push(number);
    });
    state.page = 0;
    list();
  }

  function list() {
    const pages = Math.max(1, Math.ceil(state.matches.length / PER_PAGE));
    byId("count").textContent = `${state.matches.length.toLocaleString("en")} of ${index.rows.length.toLocaleString("en")} rollouts`;
    const items = state.matches.slice(state.page * PER_PAGE, (state.page + 1) * PER_PAGE).map((number) => {
      const row = index.rows[number];
      const item = el("button", { type: "button", class: "item", "aria-current": String(number === state.row) },
        chip(row[VERDICT]), row[LOST] ? chip(lostWord(row[LOST])) : null,
        index.runs.length > 1 ? el("span", { class: "note" }, index.runs[row[RUN]]) : null,
        el("div", { class: "q" }, row[QUESTION] || row[ID]),
        el("div", { class: "a" }, row[ANSWER] || "no answer"));
      item.addEventListener("click", () => { open(number, null); if (narrow.matches) byId("detail").scrollIntoView(); });
      return item;
    });
    const turn = (label, step, off) => {
      const button = el("button", { type: "button", disabled: off ? "" : null }, label);
      button.addEventListener("click", () => { state.page += step; list(); });
      return button;
    };
    const box = el("div", { class: "items" }, ...items);
    byId("list").replaceChildren(el("div", { class: "pager" }, turn("earlier", -1, state.page === 0),
      `page ${state.page + 1} of ${pages}`, turn("later", 1, state.page >= pages - 1)), box);
    const current = items.find((item) => item.getAttribute("aria-current") === "true");
    if (current) box.scrollTop = current.offsetTop - (box.clientHeight - current.offsetHeight) / 2;
  }

  const escaped = (value) => value.replace(/[.*+?^${}()|[\]\\\/]/g, "\\$&");
  /* Text with the gold and superseded values marked, literally; the marks in the strip are the grader's own. */
  function marked(text, row, detail) {
    const old = new Set((detail.stale || []).map((value) => value.toLowerCase()));
    const values = [row[GOLDEN], ...(detail.stale || [])].filter((value) => value.trim());
    if (!values.length || !text) return [text || ""];
    values.sort((a, b) => b.length - a.length);
    const found = new RegExp(`(?<![\\p{L}\\p{N}])(${values.map(escaped).join("|")})(?![\\p{L}\\p{N}])`, "giu");
    return text.split(found).map((part, i) => {
      if (i % 2 === 0) return part;
      const gold = part.toLowerCase() === row[GOLDEN].toLowerCase() || !old.has(part.toLowerCase());
      return el("mark", { class: gold ? null : "old", title: gold ? "the value that holds" : "superseded" }, part);
    });
  }

  /* Words that stayed, went and came: the longest common subsequence. Null when the texts are too long. */
  function difference(before, after) {
    const a = before.match(/\s+|\S+/g) || [], b = after.match(/\s+|\S+/g) || [];
    const wide = b.length + 1;
    if ((a.length + 1) * wide > MOST_CELLS) return null;
    const table = new Uint32Array((a.length + 1) * wide);
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        table[i * wide + j] = a[i] === b[j] ? table[(i + 1) * wide + j + 1] + 1
          : Math.max(table[(i + 1) * wide + j], table[i * wide + j + 1]);
      }
    }
    const parts = [];
    const add = (kind, text) => {
      if (!text) return;
      if (parts.length && parts[parts.length - 1][0] === kind) parts[parts.length - 1][1] += text;
      else parts.push([kind, text]);
    };
    let i = 0, j = 0, gone = "", come = "", space = "";
    const flush = () => { add("del", gone); add("ins", come); add("same", space); gone = come = space = ""; };
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) {
        /* white space between two changes belongs to both: whole phrases go and come, not word by word */
        if ((gone || come) && !a[i].trim()) space += a[i];
        else { flush(); add("same", a[i]); }
        i++; j++;
        continue;
      }
      gone += space; come += space; space = "";
      if (i < a.length && (j >= b.length || table[(i + 1) * wide + j] >= table[i * wide + j + 1])) gone += a[i++];
      else come += b[j++];
    }
    flush();
    return parts;
  }

  const column = (title, ...content) => el("div", {}, el("h4", {}, title), el("div", { class: "box", tabindex: "0" }, ...content));

  function session(part, row, detail) {
    if (!part) return column("Session", el("p", { class: "note" }, "The session's text is not in this page."));
    const [date, evidence, turns] = part;
    const said = turns === null ? [el("p", { class: "note" }, "Left out to keep the page small (--text).")]
      : turns.map(([role, text, told]) => el("div", { class: told ? "said told" : "said", title: told ? "tells the fact" : null },
        el("b", {}, role + ": "), ...marked(text, row, detail)));
    return column(`Session of ${date || "no date"}${evidence ? " (tells the fact)" : ""}`, ...said);
  }

  function notes(turn, row, detail) {
    const now = detail.notes[turn], before = turn ? detail.notes[turn - 1] : "";
    const parts = difference(before, now);
    const shown = parts === null ? marked(now, row, detail)
      : parts.flatMap(([kind, text]) => kind === "same" ? marked(text, row, detail) : [el(kind, {}, ...marked(text, row, detail))]);
    const cut = (detail.cut || [])[turn];
    const budget = index.budgets[row[RUN]];
    return column(`Notes after it: ${now.length} of ${budget || "?"} characters`,
      el("pre", {}, ...(now || before ? shown : ["(empty)"])),
      parts === null ? el("p", { class: "note" }, "Too long to compare word by word.") : null,
      cut ? el("div", { class: "cutoff" }, el("b", {}, "cut off by the budget: "), ...marked(cut, row, detail)) : null);
  }

  function answer(row, detail) {
    const last = detail.notes && detail.notes.length ? detail.notes[detail.notes.length - 1] : null;
    return el("div", { class: "turn" },
      last === null ? null : column("Final notes, all that the answer may use", el("pre", {}, ...(last ? marked(last, row, detail) : ["(empty)"]))),
      column(index.kind === "lme-v2" ? "What the reader wrote" : "The answer",
        el("pre", {}, ...(detail.answer ? marked(detail.answer, row, detail) : ["(none)"]))));
  }

  function panel(row, detail, episode) {
    if (state.turn === state.turns - 1) return [answer(row, detail)];
    if (index.kind === "lme-v2") {
      const [title, text, evidence] = detail.context[state.turn];
      return [column(`Context ${state.turn + 1}: ${title}${evidence ? " (holds evidence)" : ""}`,
        text === null ? el("p", { class: "note" }, "Left out to keep the page small (--text).") : el("pre", {}, ...marked(text, row, detail)))];
    }
    const part = episode && episode[state.turn];
    const lost = detail.lost_at === state.turn;
    return [
      lost ? el("p", { class: "alarm" }, `The fact was lost at this turn: ${lostWord(row[LOST])}.`) : null,
      el("div", { class: "turn" }, session(part, row, detail), detail.notes.length ? notes(state.turn, row, detail) : null),
    ];
  }

  const shown = (value) => typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(3) : String(value);

  function heading(row, detail) {
    const pairs = [["gold", el("mark", {}, row[GOLDEN])]];
    if ((detail.stale || []).length) pairs.push(["superseded", el("span", {}, ...detail.stale.flatMap((value, i) => [i ? ", " : "", el("mark", { class: "old" }, value)]))]);
    pairs.push(["ended", chip(row[VERDICT])]);
    if (row[LOST]) pairs.push(["lost", chip(lostWord(row[LOST]))]);
    pairs.push([row[VERDICT] === "unscored" ? "reason" : "grader", detail.explanation]);
    if (detail.strict) pairs.push(["strict grader", `${detail.strict[0] ? "correct" : "not correct"}${detail.strict[1] ? ": " + detail.strict[1] : ""}`]);
    if ((detail.evidence || []).length) pairs.push(["evidence", detail.evidence.map(([name, number, found]) => `${name} state ${number} ${found ? "(in the context)" : "(missed)"}`).join(", ")]);
    if ((detail.actions || []).length) pairs.push(["actions", detail.actions.join(" \u2192 ")]);
    const facts = Object.entries(detail.facts || {}).map(([name, value]) => `${words(name)} ${shown(value)}`).join(", ");
    pairs.push(["row", `${index.runs[row[RUN]]}, ${row[ID]}, sample ${row[SAMPLE]}${facts ? "; " + facts : ""}`]);
    return [el("h3", {}, row[QUESTION] || row[ID]), el("dl", {}, ...pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]))];
  }

  function strip(row, detail, episode) {
    const buttons = [];
    for (let turn = 0; turn < state.turns; turn++) {
      const last = turn === state.turns - 1;
      const bits = last ? 0 : (detail.marks || [])[turn] || (detail.context && detail.context[turn][2] ? GOLD : 0);
      const lost = detail.lost_at === turn;
      const label = last ? "answer" : String(turn + 1);
      const told = !last && episode && episode[turn] && episode[turn][1];
      const said = [last ? "answer" : `turn ${turn + 1}`, bits & GOLD ? (detail.context ? "holds evidence" : "notes hold the value") : "",
        bits & OLD ? "notes hold a superseded value" : "", told ? "its session tells the fact" : "", lost ? "the fact was lost here" : ""];
      const button = el("button", {
        type: "button", title: said.filter(Boolean).join("; "), "aria-label": said.filter(Boolean).join("; "),
        "aria-current": turn === state.turn ? "step" : null,
        class: [bits & GOLD ? "has-gold" : "", bits & OLD ? "has-old" : "", lost ? "lost-here" : ""].join(" ").trim() || null,
      }, told ? label + "*" : label);
      button.addEventListener("click", () => show(turn));
      buttons.push(button);
    }
    return el("div", { class: "strip", role: "group", "aria-label": "turns" }, ...buttons);
  }

  function open(number, turn) {
    state.row = number;
    const detail = block(`details-${Math.floor(number / index.chunk)}`)[number % index.chunk];
    const episode = episodeOf(detail);
    const steps = index.kind === "lme-v2" ? (detail.context || []).length : Math.max((detail.notes || []).length, episode ? episode.length : 0);
    state.turns = steps + 1;
    state.turn = turn === null ? (detail.lost_at === undefined ? steps : detail.lost_at) : turn;
    state.turn = Math.min(Math.max(state.turn, 0), steps);
    list();
    draw();
  }

  function episodeOf(detail) {
    if (detail.episode === undefined) return null;
    return block(`episodes-${Math.floor(detail.episode / index.episode_chunk)}`)[detail.episode % index.episode_chunk];
  }

  function show(turn) {
    state.turn = Math.min(Math.max(turn, 0), state.turns - 1);
    draw();
  }

  function draw() {
    const row = index.rows[state.row];
    const detail = block(`details-${Math.floor(state.row / index.chunk)}`)[state.row % index.chunk];
    const episode = episodeOf(detail);
    const move = (label, step, off) => {
      const button = el("button", { type: "button", disabled: off ? "" : null }, label);
      button.addEventListener("click", () => show(state.turn + step));
      return button;
    };
    const full = index.kind === "supersede" && row[VERDICT] !== "unscored" && !detail.notes.length;
    const key = index.kind === "lme-v2" ? "green: holds evidence" : "green: the notes hold the value, orange: a superseded one, *: the session tells the fact, red frame: lost here";
    byId("detail").replaceChildren(...heading(row, detail), strip(row, detail, episode),
      full ? el("p", { class: "note" }, "Full context: all sessions in one prompt, no notes.") : el("p", { class: "note" }, key),
      ...panel(row, detail, episode).filter(Boolean),
      el("div", { class: "pager" }, move("previous turn", -1, state.turn === 0), `${state.turn + 1} of ${state.turns}`,
        move("next turn", 1, state.turn === state.turns - 1)));
    const told = byId("detail").querySelector(".told");
    if (told) { /* of a long session the line that tells the fact */
      const box = told.closest(".box");
      box.scrollTop += told.getBoundingClientRect().top - box.getBoundingClientRect().top - 60;
    }
    history.replaceState(null, "", `#r=${state.row}&t=${state.turn}`);
  }

  function next(step) {
    const at = state.matches.indexOf(state.row) + step;
    if (at < 0 || at >= state.matches.length) return;
    state.page = Math.floor(at / PER_PAGE);
    open(state.matches[at], null);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const keys = { ArrowLeft: () => show(state.turn - 1), ArrowRight: () => show(state.turn + 1), j: () => next(1), k: () => next(-1) };
    if (state.row >= 0 && Object.hasOwn(keys, event.key)) { event.preventDefault(); keys[event.key](); }
  });
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  for (const field of fields) field.addEventListener("input", filter);
  const asked = /^#r=(\d+)&t=(\d+)$/.exec(location.hash);
  const before = location.hash;
  filter();
  if (asked && Number(asked[1]) < index.rows.length) {
    const place = state.matches.indexOf(Number(asked[1]));
    state.page = Math.floor(place / PER_PAGE);
    open(Number(asked[1]), Number(asked[2]));
    byId(narrow.matches ? "detail" : "rollouts").scrollIntoView();
  } else {
    open(0, null);
    history.replaceState(null, "", before || location.pathname + location.search);
  }
  ready();
})();
