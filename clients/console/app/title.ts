/** The title of the page. @param name of the view or of its record; empty: the console alone */
export function setTitle(name: string): void {
  document.title = name === '' ? 'zerofleet' : `${name} · zerofleet`;
}
