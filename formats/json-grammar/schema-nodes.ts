/** A schema, read. Numbers are indices in the list of all nodes, because schemas may be recursive. */
export type SchemaNode =
  | { kind: 'any' | 'number' | 'integer' }
  | { kind: 'literals'; values: readonly unknown[] }
  | { kind: 'string'; min: number; max: number | null }
  | { kind: 'array'; item: number; min: number; max: number | null }
  | { kind: 'object'; properties: readonly SchemaProperty[] }
  /** An object with any names. */
  | { kind: 'map'; value: number }
  | { kind: 'choice'; options: readonly number[] };

interface SchemaProperty {
  name: string;
  required: boolean;
  value: number;
}

/** Returns the nodes that a node is a choice of. */
export function concrete(nodes: readonly SchemaNode[], first: number): SchemaNode[] {
  const found: SchemaNode[] = [];
  const indices = new Set([first]);
  for (const index of indices) {
    const node = nodes[index] as SchemaNode;
    if (node.kind !== 'choice') found.push(node);
    else for (const other of node.options) indices.add(other);
  }
  return found;
}

/** Returns for each node whether a value of finite size satisfies it. */
export function haveFiniteValues(nodes: readonly SchemaNode[]): boolean[] {
  const users = nodes.map((): number[] => []);
  const needed = nodes.map((node, index) => {
    const parts = partsOf(node);
    for (const part of parts) users[part]?.push(index);
    return node.kind === 'choice' ? 1 : parts.length;
  });
  const finite = needed.map((count) => count === 0);
  const found = [...finite.keys()].filter((index) => finite[index]);
  for (const index of found) {
    for (const user of users[index] ?? []) {
      needed[user] = (needed[user] ?? 0) - 1;
      if (finite[user] || (needed[user] ?? 0) > 0) continue;
      finite[user] = true;
      found.push(user);
    }
  }
  return finite;
}

/** Returns the nodes that a value of a node needs: all of them, or one for a choice. */
function partsOf(node: SchemaNode): readonly number[] {
  if (node.kind === 'choice') return node.options;
  if (node.kind === 'array') return node.min > 0 ? [node.item] : [];
  if (node.kind !== 'object') return [];
  return node.properties.filter(({ required }) => required).map(({ value }) => value);
}
