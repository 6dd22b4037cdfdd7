import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openapiProblems } from './openapi.mjs';

const CONTRACT = `openapi: 3.1.0
info: {title: lamps, version: 1.0.0, description: Lamps., license: {name: Apache-2.0, identifier: Apache-2.0}}
servers: [{url: /}]
security: []
tags: [{name: lamps, description: Lamps.}]
paths:
  /lamps:
    get:
      operationId: listLamps
      tags: [lamps]
      summary: List lamps
      description: All of them.
      responses:
        '200':
          description: The lamps.
          content:
            application/json:
              schema: {type: array, items: {type: string}}
              example: [green]
        '429': {description: Too many requests.}
`;

/** Rules that report a problem in the contract after a change. */
async function rulesAgainst(t, from = '', to = '') {
  const file = join(t.testdir(), 'openapi.yaml');
  writeFileSync(file, CONTRACT.replace(from, to));
  return (await openapiProblems(file)).map((problem) => /\(([a-z]+: [a-zA-Z0-9-]+)\)$/.exec(problem)?.[1]);
}

t.test('a contract is checked by the rules of Redocly and of Spectral', async (t) => {
  t.same(await rulesAgainst(t), []);
  t.same(await rulesAgainst(t, "        '429': {description: Too many requests.}\n"), [
    'redocly: operation-4xx-response',
  ]);
  t.same(await rulesAgainst(t, '      description: All of them.\n'), ['spectral: operation-description']);
});

t.test('an example that violates its schema is a problem', async (t) => {
  t.match(await rulesAgainst(t, 'example: [green]', 'example: [1]'), /spectral: oas3-valid-media-example/);
});
