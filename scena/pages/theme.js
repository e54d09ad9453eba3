try { // before anything is drawn; a page that may not store anything follows the system
  const stored = localStorage.getItem("scena-theme");
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
} catch {}
