// Each choice of a quiz becomes a button, which shows its reason from the fold below. Without
// scripts that fold has all reasons, in the order of the choices.
document.querySelectorAll("details.quiz").forEach((answer) => {
  const choices = answer.previousElementSibling;
  const reasons = answer.querySelectorAll("li");
  const told = document.createElement("p");
  told.className = "told";
  told.setAttribute("role", "status"); // a screen reader reads out what is put into it
  choices.classList.add("choices");
  choices.after(told);
  [...choices.children].forEach((choice, at) => {
    const button = document.createElement("button");
    const words = choice.querySelector("p") ?? choice;
    button.type = "button";
    words.querySelectorAll("a").forEach((link) => link.replaceWith(...link.childNodes)); // none in a button
    button.setAttribute("aria-pressed", "false");
    button.append(...words.childNodes);
    words.append(button);
    button.addEventListener("click", () => {
      const reason = reasons[at].querySelector("p") ?? reasons[at];
      const right = / is right: /.test(reason.textContent);
      choices.querySelectorAll("button").forEach((one) => {
        one.setAttribute("aria-pressed", String(one === button));
        delete one.dataset.right;
      });
      button.dataset.right = told.dataset.right = String(right);
      told.replaceChildren(right ? "" : "Wrong. ", ...reason.cloneNode(true).childNodes);
    });
  });
});
