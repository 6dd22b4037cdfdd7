// A StrykerJS plugin that excludes log lines and error messages from mutation.

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace'];

function isLogCall(node) {
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return false;
  const { object, property } = node.callee;
  const receiver = object.type === 'MemberExpression' ? object.property : object;
  return receiver.name === 'log' && LEVELS.includes(property.name);
}

/** Errors with a code as the first argument and the message as the second. */
const CODED = ['ZerofleetError', 'ObjectStoreError'];

function isMessage({ parent, listKey, key }) {
  if (parent?.type !== 'NewExpression' || listKey !== 'arguments' || !/Error$/.test(parent.callee.name))
    return false;
  return key === (CODED.includes(parent.callee.name) ? 1 : 0);
}

export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'messages',
    value: {
      shouldIgnore(path) {
        const { node } = path;
        const does = node.type === 'ArrowFunctionExpression' ? node.body : node;
        if (isLogCall(does)) return 'a line of the log';
        return isMessage(path) ? 'the message of an error' : undefined;
      },
    },
  },
];
