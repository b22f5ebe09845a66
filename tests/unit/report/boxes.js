// What is wrong with the boxes of a page as it stands: things cut off, or one over another. A list of sentences.
() => {
  const wrong = [];
  const told = (element) => `${element.tagName.toLowerCase()}.${element.getAttribute("class") || ""} "${
    element.textContent.trim().slice(0, 40)}"`;
  const visible = (element) => element.checkVisibility() && element.getBoundingClientRect().width > 0;
  const outside = (inner, outer, slack = 1) => inner.left < outer.left - slack || inner.right > outer.right + slack
    || inner.top < outer.top - slack || inner.bottom > outer.bottom + slack;
  const over = (one, other, slack = 1) => one.left < other.right - slack && other.left < one.right - slack
    && one.top < other.bottom - slack && other.top < one.bottom - slack;
  const box = (element) => element.getBoundingClientRect();
  const all = (selector, within = document) => [...within.querySelectorAll(selector)].filter(visible);

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`the page is ${root.scrollWidth} wide in ${root.clientWidth}`);
  // No box hides a part of what it holds, and no table or text must be scrolled aside to be read.
  all("main *, header *, nav *").forEach((element) => {
    if (element.closest("svg") || ["INPUT", "SELECT"].includes(element.tagName)) return;
    const style = getComputedStyle(element);
    const clips = style.overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1;
    if (clips && element.clientWidth) wrong.push(`${told(element)} is cut off: ${element.scrollWidth} in ${element.clientWidth}`);
  });
  // Words lie within the panel, card or cell that they are in.
  const words = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const parent = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || parent.closest("svg, pre, option") || !visible(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(words.currentNode);
    const holder = parent.closest("td, th, .card, .panel, .layer, main");
    if (outside(box(range), box(holder), 2)) wrong.push(`"${words.currentNode.data.trim().slice(0, 40)}" leaves ${told(holder)}`);
  }
  const panels = all("main > section, main .panel, main .card, main .layer");
  panels.forEach((one, place) => panels.slice(place + 1).forEach((other) => {
    if (!one.contains(other) && !other.contains(one) && over(box(one), box(other))) wrong.push(`${told(one)} over ${told(other)}`);
  }));
  // Plots: legends are beside the area, words are within the picture and not over one another, buttons over none.
  all(".plot").forEach((plot) => {
    const frame = plot.getBoundingClientRect();
    const [legend] = all(".legend", plot);
    const name = plot.dataset.figure;
    all(".cartesianlayer .plot, .bglayer .bg", plot).forEach((area) => {
      if (legend && over(box(legend), box(area))) wrong.push(`the legend of ${name} lies over the plot`);
    });
    const texts = all("svg text", plot).filter((text) => text.textContent.trim() && !text.closest(".hoverlayer"));
    texts.forEach((text) => { if (outside(box(text), frame, 2)) wrong.push(`${name}: ${told(text)} leaves the picture`); });
    const marks = [...texts, ...all(".colorbar .cbfills", plot)];
    all(".modebar-group", plot).forEach((buttons) => marks.forEach((mark) => {
      if (over(box(buttons), box(mark))) wrong.push(`${name}: the buttons lie over ${told(mark)}`);
    }));
    const level = texts.filter((text) => !/rotate\((?!-?0[,)])/.test(text.getAttribute("transform") || ""));
    level.forEach((one, place) => level.slice(place + 1).forEach((other) => {
      if (over(box(one), box(other), 2)) wrong.push(`${name}: ${told(one)} over ${told(other)}`);
    }));
  });
  all(".walk svg").forEach((drawing) => {
    const texts = all("text", drawing);
    texts.forEach((text) => { if (outside(box(text), box(drawing), 1)) wrong.push(`${told(text)} leaves the drawing`); });
    texts.forEach((one, place) => texts.slice(place + 1).forEach((other) => {
      if (over(box(one), box(other))) wrong.push(`${told(one)} over ${told(other)}`);
    }));
  });
  return [...new Set(wrong)];
}
