"use strict";
// Names the step under the pointer, or under the finger, in the line below its picture.
for (const figure of document.querySelectorAll("figure")) {
  const hint = figure.querySelector(".hint");
  if (!hint) continue;
  const rest = hint.textContent;
  const name = (event) => {
    const title = event.target.closest("svg *")?.querySelector(":scope > title");
    hint.textContent = title ? title.textContent : rest;
  };
  figure.addEventListener("pointerover", name);
  figure.addEventListener("click", name);
}
for (const button of document.querySelectorAll(".command button")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // Without the right to the clipboard the command is selected, to be copied by hand.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
  });
}
