/** Addresses of views, by the fragment: `#/runs/job_…?tab=logs`. A fragment is never sent to a server. */

interface Route {
  /** Parts of the path. */
  path: readonly string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  return { path: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

/** An address may be typed by hand: a part that is no encoded text is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the address of a view. Empty values are left out. */
export function linkTo(
  path: readonly string[],
  query: Readonly<Record<string, string | readonly string[] | undefined>> = {},
): string {
  const params = new URLSearchParams();
  for (const [name, values] of Object.entries(query))
    for (const value of [values ?? []].flat()) if (value !== '') params.append(name, value);
  const search = params.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${search && `?${search}`}`;
}
