/** Names of refused opcodes for messages (Python's `pickletools`). */
const NAMES: Readonly<Record<number, string>> = {
  48: 'POP',
  49: 'POP_MARK',
  50: 'DUP',
  70: 'FLOAT',
  73: 'INT',
  76: 'LONG',
  80: 'PERSID',
  83: 'STRING',
  84: 'BINSTRING',
  85: 'SHORT_BINSTRING',
  86: 'UNICODE',
  66: 'BINBYTES',
  67: 'SHORT_BINBYTES',
  100: 'DICT',
  103: 'GET',
  105: 'INST',
  108: 'LIST',
  111: 'OBJ',
  112: 'PUT',
  130: 'EXT1',
  131: 'EXT2',
  132: 'EXT4',
  139: 'LONG4',
  141: 'BINUNICODE8',
  142: 'BINBYTES8',
  143: 'EMPTY_SET',
  144: 'ADDITEMS',
  145: 'FROZENSET',
  146: 'NEWOBJ_EX',
  150: 'BYTEARRAY8',
  151: 'NEXT_BUFFER',
  152: 'READONLY_BUFFER',
};

export function opcodeName(opcode: number): string {
  const hex = `0x${opcode.toString(16).padStart(2, '0')}`;
  const name = NAMES[opcode];
  return name === undefined ? hex : `${name} (${hex})`;
}
