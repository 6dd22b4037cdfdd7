/** Methods of each route, for answers to a request with another method. */
export class RouteMethods {
  private readonly routes = new Map<string, { pattern: RegExp; methods: Set<string> }>();

  /** @param url in Fastify's notation, with `:name` for a path segment and `*` for any rest */
  add(url: string, method: string | readonly string[]): void {
    const route = this.routes.get(url) ?? { pattern: patternOf(url), methods: new Set() };
    this.routes.set(url, route);
    for (const one of [method].flat()) route.methods.add(one);
  }

  /** Sorted; empty for an unknown path. */
  methodsOf(path: string): string[] {
    const found = [...this.routes.values()].filter(({ pattern }) => pattern.test(path));
    return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort();
  }
}

function patternOf(url: string): RegExp {
  const parts = url.split('/').map((part) => {
    if (part === '*') return '.*';
    return part.startsWith(':') ? '[^/]+' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${parts.join('/')}$`);
}
