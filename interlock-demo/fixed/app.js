// The menu of the narrow layout, and the answer to the sign-up form.

const menu = document.querySelector(".menu");
const nav = document.querySelector(".nav");

menu.addEventListener("click", () => {
  const open = nav.classList.toggle("open");
  menu.setAttribute("aria-expanded", String(open));
});

const form = document.querySelector(".signup");

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const answer = document.createElement("p");
  answer.setAttribute("role", "status");
  answer.textContent = "Thank you. The link is on its way.";
  form.replaceWith(answer);
});
