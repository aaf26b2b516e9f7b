// Light and dark.

const dark = matchMedia('(prefers-color-scheme: dark)');
function stored(write) {
  try {
    // storage may be forbidden for files
    if (write === undefined) return localStorage.getItem('llpbench-theme');
    localStorage.setItem('llpbench-theme', write);
  } catch {
    /* the choice then lasts as long as the page */
  }
  return null;
}
function applyTheme(theme) {
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  const now = document.documentElement.dataset.theme || (dark.matches ? 'dark' : 'light');
  $('theme').textContent = now === 'dark' ? '☀ Light' : '☾ Dark';
  $('theme').setAttribute('aria-label', now === 'dark' ? 'Switch to light colours' : 'Switch to dark colours');
}
$('theme').addEventListener('click', () => {
  const now = document.documentElement.dataset.theme || (dark.matches ? 'dark' : 'light');
  const next = now === 'dark' ? 'light' : 'dark';
  applyTheme(next);
  stored(next);
});
dark.addEventListener('change', () => applyTheme());
applyTheme(stored());
