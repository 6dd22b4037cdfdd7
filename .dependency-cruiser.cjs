// The layering of the TypeScript rooms: which may import which. The table is docs/architecture.md's; the native folders have
// the same kind of check in tools/lint/native-layers.mjs.
const mayImport = {
  contracts: [],
  spec: ['contracts'],
  scheduler: [],
  platform: ['contracts', 'spec'],
  state: ['contracts', 'spec', 'scheduler', 'platform'],
  control: ['contracts', 'spec', 'scheduler', 'platform', 'state'],
  api: ['contracts', 'spec', 'platform', 'state', 'control', 'client'],
  worker: ['contracts', 'spec', 'platform', 'state', 'control', 'native/js'],
  autoscaler: ['contracts', 'spec', 'scheduler', 'platform', 'state', 'control'],
  'native/js': [],
  client: ['contracts'],
  cli: ['contracts', 'spec', 'client'],
  web: ['contracts', 'client'],
};
const everywhere = ['bench', 'test', 'tools', 'stack', 'ops'];

const rooms = Object.keys(mayImport);
const below = (names) => `^(${names.join('|')})/`;

const layerRules = rooms.map((room) => ({
  name: `layers-${room.replace('/', '-')}`,
  comment: `${room}/ may import ${mayImport[room].join(', ') || 'no other room'}`,
  severity: 'error',
  from: { path: below([room]) },
  to: {
    path: below(
      [...rooms, ...everywhere].filter((other) => other !== room && !mayImport[room].includes(other)),
    ),
  },
}));

/** Rooms that others reach through their index.ts; inside the room files import files. */
const indexRules = ['spec', 'state'].flatMap((room) => [
  {
    name: `index-of-${room}`,
    comment: `other rooms import ${room}/index.ts`,
    severity: 'error',
    from: { pathNot: `^(${room}|tools/docs)/` },
    to: { path: `^${room}/`, pathNot: `^${room}/(index\\.ts$|testing/)` },
  },
]);
const ownIndexRule = {
  name: 'files-inside-a-room',
  comment: 'inside a room files import files: its index.ts is for other rooms',
  severity: 'error',
  from: { path: '^([^/]+)/', pathNot: '\\.test\\.ts$|/testing/' },
  to: { path: '^$1/index\\.ts$' },
};

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...layerRules,
    ...indexRules,
    ownIndexRule,
    {
      name: 'native-behind-one-adapter',
      comment: 'worker/ reaches the native core through one file only',
      severity: 'error',
      from: { path: '^worker/', pathNot: '^worker/native/adapter\\.ts$' },
      to: { path: '^native/js/' },
    },
    {
      name: 'contracts-and-spec-without-io',
      comment: 'contracts/ and spec/ are types, tables and pure functions',
      severity: 'error',
      from: { path: '^(contracts|spec)/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?(crypto|util)$' },
    },
    {
      name: 'no-test-code-in-products',
      comment: 'only tests may import tests and test helpers',
      severity: 'error',
      from: { pathNot: '(\\.test\\.ts$|/testing/|^(test|bench|tools)/)' },
      to: { path: '(\\.test\\.ts$|/testing/)' },
    },
    {
      name: 'no-development-packages-in-products',
      comment: 'what runs in production is a dependency, not a devDependency',
      severity: 'error',
      from: { path: below(rooms), pathNot: '(\\.test\\.ts$|/testing/)' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-cycles',
      comment: 'circles that types close count, too',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    { name: 'nothing-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'nothing-undeclared',
      comment: 'a package that is imported stands in package.json; that of the bundler in web/package.json',
      severity: 'error',
      from: { path: below([...rooms, ...everywhere]), pathNot: '^tools/bootstrap/programs\\.mjs$' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
