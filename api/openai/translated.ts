/** What the translated APIs have in common. */
import type { FastifyContextConfig, FastifyInstance } from 'fastify';
import { Refusal } from './errors.js';

/** Prefixes of the paths of each translated API. */
export const PREFIXES = { openai: '/openai', tinker: '/tinker' } as const;

/** True if a path belongs to a translated API, also where no route has it. */
export function isTranslatedPath(url: string): boolean {
  return Object.values(PREFIXES).some((prefix) => url.startsWith(`${prefix}/`));
}

/** Makes the routes of a scope those of a translated API, which refuses all other paths by name. */
export function translateRoutes(scope: FastifyInstance, config: FastifyContextConfig = {}): void {
  const translated = { ...config, isTranslated: true };
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, ...translated };
  });
  const options = { config: translated };
  scope.setNotFoundHandler(options as object, (request) => {
    const [path] = request.url.split('?', 1);
    throw new Refusal(404, 'not_supported', null, `${request.method} ${path} is not supported`);
  });
}
