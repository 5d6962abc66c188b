// The search page: asks Pagefind's index (scripts/build_site.py makes it) and lists what it finds.

const SHOWN = 25;
const summary = document.getElementById("search-summary");
const list = document.getElementById("search-results");
const field = document.querySelector(".search-form input");

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function hit(found) {
  const item = element("li", {}, element("a", { href: found.url, textContent: found.meta.title }));
  const sections = found.sub_results.filter((each) => each.url !== found.url).slice(0, 3);
  // Pagefind escapes the page's text in an excerpt; <mark> is its own.
  item.append(element("p", { innerHTML: (sections[0] ?? found).excerpt }));
  if (sections.length)
    item.append(element("p", { className: "sections" }, ...sections.map((each) =>
      element("a", { href: each.url, textContent: each.title }))));
  return item;
}

async function search(words) {
  const pagefind = await import("../pagefind/pagefind.js");
  await pagefind.options({ excerptLength: 25 });
  const { results } = await pagefind.search(words);
  const found = await Promise.all(results.slice(0, SHOWN).map((each) => each.data()));
  list.replaceChildren(...found.map(hit));
  summary.textContent = results.length
    ? `${results.length} ${results.length === 1 ? "page" : "pages"} for “${words}”`
    : `Nothing found for “${words}”. Try fewer or other words.`;
}

const words = new URLSearchParams(location.search).get("q")?.trim();
if (words) {
  field.value = words;
  search(words).catch(() => {
    summary.textContent = "The search needs a web server: run python -m http.server in the site's folder.";
  });
}
