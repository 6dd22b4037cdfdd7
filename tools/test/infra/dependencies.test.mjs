import t from 'tap';
import { dependenciesOf, missingDependencies, NEEDED, readGraph } from './dependencies.mjs';

const node = (name, phase = 'expand') => `[root] module.zerofleet.module.${name} (${phase})`;
const edge = (from, to) => `\t\t"${from}" -> "${to}"`;

/** A graph in which each program depends, through an output, on all that it needs. */
const complete = () =>
  Object.entries(NEEDED).flatMap(([program, needed]) => {
    const output = node(`${program}.output`);
    return [edge(node(program), output), ...needed.map((resource) => edge(output, node(resource)))];
  });

t.test('dependencies count through others', (t) => {
  const edges = readGraph(
    [edge('[root] a (expand)', '[root] b (expand)'), edge('[root] b (expand)', '[root] c (expand)')].join(
      '\n',
    ),
  );
  t.same([...dependenciesOf(edges, 'a (expand)')], ['b (expand)', 'c (expand)']);
  t.end();
});

t.test('a program that waits for everything has no problem', (t) => {
  t.same(missingDependencies(readGraph(complete().join('\n'))), []);
  t.end();
});

t.test('each edge that is missing is reported', (t) => {
  const programs = new Set(Object.keys(NEEDED));
  for (const [program, needed] of Object.entries(NEEDED))
    for (const resource of needed.filter((name) => !programs.has(name))) {
      const lines = complete().filter((line) => line !== edge(node(`${program}.output`), node(resource)));
      const problems = missingDependencies(readGraph(lines.join('\n')));
      const waits = needed.some((other) => programs.has(other) && NEEDED[other].includes(resource));
      t.equal(
        problems.includes(`${program} does not wait for ${resource}`),
        !waits,
        `${program}: ${resource}`,
      );
    }
  t.end();
});

t.test('what comes after a module is not what comes before it', (t) => {
  const program = Object.keys(NEEDED)[0];
  const lines = [
    edge(node(program), node('api')),
    edge(node('api', 'close'), node('queue.aws_memorydb_cluster.this')),
  ];
  t.ok(
    missingDependencies(readGraph(lines.join('\n'))).includes(
      `${program} does not wait for queue.aws_memorydb_cluster.this`,
    ),
  );
  t.end();
});
