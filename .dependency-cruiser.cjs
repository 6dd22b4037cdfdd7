// The layering of the TypeScript rooms: which may import which. The table is docs/architecture.md's; the native folders
// have the same kind of check in tools/lint/native-layers.mjs.
const mayImport = {
  contracts: [],
  'job-document': ['contracts'],
  scheduler: [],
  platform: ['contracts'],
  formats: ['contracts', 'job-document', 'platform'],
  graders: ['contracts', 'platform', 'formats'],
  state: ['contracts', 'job-document', 'scheduler', 'platform', 'formats'],
  control: ['contracts', 'job-document', 'scheduler', 'platform', 'formats', 'state'],
  api: [
    'contracts',
    'job-document',
    'platform',
    'formats',
    'graders',
    'state',
    'control',
    'clients/typescript',
  ],
  worker: ['contracts', 'job-document', 'platform', 'formats', 'graders', 'state', 'native/js'],
  autoscaler: ['contracts', 'job-document', 'scheduler', 'platform', 'formats', 'state', 'control'],
  'native/js': ['contracts'],
  'clients/typescript': ['contracts'],
  'clients/text': ['contracts'],
  'clients/cli': ['contracts', 'job-document', 'clients/typescript', 'clients/text'],
  'clients/console': ['contracts', 'clients/typescript', 'clients/text'],
};
const everywhere = ['bench', 'test', 'tools', 'ops'];

const rooms = Object.keys(mayImport);
const below = (names) => `^(${names.join('|')})/`;
/** What tests of a room may import beyond it. */
const testsMayImport = { worker: ['control'] };
const TESTS = '\\.test\\.ts$|/testing/';

const layerRule = (room, name, from, allowed) => ({
  name,
  comment: `${room}/ may import ${allowed.join(', ') || 'no other room'}`,
  severity: 'error',
  from: { path: below([room]), ...from },
  to: {
    path: below([...rooms, ...everywhere].filter((other) => other !== room && !allowed.includes(other))),
  },
});
const layerRules = rooms.flatMap((room) => {
  const name = `layers-${room.replace('/', '-')}`;
  const added = testsMayImport[room];
  if (added === undefined) return layerRule(room, name, {}, mayImport[room]);
  return [
    layerRule(room, name, { pathNot: TESTS }, mayImport[room]),
    layerRule(room, `${name}-tests`, { path: `${below([room])}.*(${TESTS})` }, [
      ...mayImport[room],
      ...added,
    ]),
  ];
});

/** Rooms that others reach through their index.ts; inside the room files import files. */
const indexRules = ['job-document', 'state'].flatMap((room) => [
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
      from: { path: '^worker/', pathNot: '^worker/shared/native/adapter\\.ts$' },
      to: { path: '^native/js/' },
    },
    {
      name: 'agent-without-rank',
      comment: 'an agent imports nothing of its ranks: what both need is in worker/shared/',
      severity: 'error',
      from: { path: '^worker/agent/', pathNot: '\\.test\\.ts$' },
      to: { path: '^worker/rank/' },
    },
    {
      name: 'rank-without-agent',
      comment: 'ranks and tasks import nothing of their agent',
      severity: 'error',
      from: { path: '^worker/(rank|tasks|shared)/', pathNot: '\\.test\\.ts$' },
      to: { path: '^worker/agent/' },
    },
    {
      name: 'contracts-and-job-document-without-io',
      comment: 'contracts/ and job-document/ are types, tables and pure functions',
      severity: 'error',
      from: { path: '^(contracts|job-document)/', pathNot: '\\.test\\.ts$' },
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
      comment:
        'a package that is imported stands in package.json; that of the bundler in clients/console/package.json',
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
