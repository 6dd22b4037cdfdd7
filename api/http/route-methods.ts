/** The methods that each route has, for a request that came with another one. */
export class RouteMethods {
  private readonly routes = new Map<string, { pattern: RegExp; methods: Set<string> }>();

  /** @param url as Fastify has it, with `:name` for a part of a path and `*` for any rest */
  add(url: string, method: string | readonly string[]): void {
    const route = this.routes.get(url) ?? { pattern: patternOf(url), methods: new Set() };
    this.routes.set(url, route);
    for (const one of [method].flat()) route.methods.add(one);
  }

  /** Sorted; empty when there is no such path. */
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
