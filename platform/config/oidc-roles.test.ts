import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { PROJECT_NAME } from '../../contracts/index.js';
import { projectRoot } from '../process/root.js';
import { oidcRoles } from './oidc-roles.js';

t.test('roles in the order of the text', async (t) => {
  const text =
    '{"b": {"project": "team-b", "scopes": ["jobs:read", "models"]}, "a": {"project": "x", "scopes": ["admin"]}}';
  t.same(oidcRoles(text), [
    { role: 'b', project: 'team-b', scopes: ['jobs:read', 'models'] },
    { role: 'a', project: 'x', scopes: ['admin'] },
  ]);
});

t.test('the wrong part is named', async (t) => {
  for (const [text, message] of [
    ['{', /is not JSON/],
    ['[]', /must be \{/],
    ['{}', /must be \{/],
    ['{"a": 1}', /a must have a project/],
    ['{"a": {"project": "A b", "scopes": ["admin"]}}', /project of a/],
    ['{"a": {"project": "x", "scopes": []}}', /scopes of a/],
    ['{"a": {"project": "x", "scopes": ["root"]}}', /scopes of a must be some of jobs:read/],
    ['{"a": {"project": "x", "scopes": ["admin"], "more": 1}}', /unknown field more/],
  ] as const)
    t.throws(() => oidcRoles(text), { message }, text);
});

t.test('the name of a project is that of the contract', async (t) => {
  const contract = readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8');
  t.ok(contract.includes(PROJECT_NAME.source));
});
