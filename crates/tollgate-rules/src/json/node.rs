//! A JSON document as a tree: text is borrowed from it, and objects keep all of their fields in order. Types are read from
//! its nodes.

use super::JsonError;
use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
        value::{BorrowedStrDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Number, Value};
use std::{borrow::Cow, collections::HashSet, fmt, iter, slice};

/// A value.
#[derive(Debug)]
pub enum Node<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Number(Number),
    /// Text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Node<'a>>),
    /// An object, with names as often as they are given.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// Reads one document.
    ///
    /// # Errors
    /// Where it is not JSON.
    pub fn parse(text: &'a [u8]) -> Result<Self, JsonError> {
        serde_json::from_slice(text).map_err(|error| JsonError::syntax(&error))
    }

    /// Refuses names that are none of these or are given twice, where it is an object.
    ///
    /// # Errors
    /// Where it has one.
    pub fn only(&self, known: &[&str]) -> Result<(), JsonError> {
        let Self::Object(fields) = self else { return Ok(()) };
        match fields.iter().find(|(name, _)| !known.contains(&&**name)) {
            Some((name, _)) => Err(JsonError::unknown(name, known)),
            None => repeated(fields).map_or(Ok(()), |name| Err(JsonError::repeated(name))),
        }
    }

    /// The field of this name, where it is an object that has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(field, _)| field == name).map(|(_, node)| node)
    }

    /// Reads a type from it.
    ///
    /// # Errors
    /// Where it is not of this type.
    pub fn read<T: Deserialize<'a>>(&self) -> Result<T, JsonError> {
        T::deserialize(self).map_err(|error| error.reading(self))
    }

    /// The items of a list.
    ///
    /// # Errors
    /// Where it is none.
    pub fn list(&self) -> Result<&[Self], JsonError> {
        match self {
            Self::List(items) => Ok(items),
            _ => Err(super::expected::<JsonError>("a list").reading(self)),
        }
    }

    /// As JSON; of a name given twice, the last.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.value().to_string()
    }

    fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Whole(number) => Value::from(*number),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::from(&**text),
            Self::List(items) => items.iter().map(Self::value).collect(),
            Self::Object(fields) => {
                fields.iter().map(|(name, node)| (name.to_string(), node.value())).collect()
            }
        }
    }

    fn object<V: Visitor<'a>>(fields: &[(Cow<'a, str>, Self)], visitor: V) -> Result<V::Value, JsonError> {
        match repeated(fields) {
            Some(name) => Err(JsonError::repeated(name)),
            None => visitor.visit_map(Fields { left: fields.iter(), value: &Node::Null, name: "" }),
        }
    }
}

/// A name that is given twice.
fn repeated<'n>(fields: &'n [(Cow<'_, str>, Node<'_>)]) -> Option<&'n str> {
    // A set costs more than a few comparisons, and less than many.
    const FEW: usize = 16;
    let mut names = fields.iter().map(|(name, _)| &**name);
    if fields.len() > FEW {
        let mut seen = HashSet::with_capacity(fields.len());
        return names.find(|name| !seen.insert(*name));
    }
    names.enumerate().find(|(place, name)| fields[..*place].iter().any(|(it, _)| it == name)).map(|it| it.1)
}

impl<'de: 'a, 'a> Deserialize<'de> for Node<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(u64::try_from(value).map_or_else(|_| Node::Number(value.into()), Node::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(Number::from_f64(value).map_or(Node::Null, Node::Number))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node<'de>, A::Error> {
        iter::from_fn(|| items.next_element().transpose()).collect::<Result<_, _>>().map(Node::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<Node<'de>>()? {
            // JSON has no other names.
            let Node::Text(name) = name else { return Err(super::expected("a name in quotes")) };
            fields.push((name, map.next_value()?));
        }
        Ok(Node::Object(fields))
    }
}

impl<'de> Deserializer<'de> for &Node<'de> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Whole(number) => visitor.visit_u64(*number),
            Node::Number(number) => match number.as_i64() {
                Some(number) => visitor.visit_i64(number),
                None => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Node::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Node::Text(Cow::Owned(text)) => visitor.visit_str(text),
            Node::List(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Node::Object(fields) => Node::object(fields, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self {
            Node::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        match self {
            Node::Object(fields) => Node::object(fields, visitor),
            // Serde would take a list for it.
            _ => Err(JsonError::invalid_type(Unexpected::Other("another"), &visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        match self {
            Node::Text(text) => visitor.visit_enum(StrDeserializer::new(text)),
            _ => Err(super::expected("text")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// The items of a list that are not read yet.
struct Items<'n, 'a>(iter::Enumerate<slice::Iter<'n, Node<'a>>>);

impl<'a> SeqAccess<'a> for Items<'_, 'a> {
    type Error = JsonError;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, JsonError> {
        let Some((index, node)) = self.0.next() else { return Ok(None) };
        seed.deserialize(node).map(Some).map_err(|error| error.reading(node).in_item(index))
    }
}

/// The fields of an object that are not read yet, and the one whose name was read last.
struct Fields<'n, 'a> {
    left: slice::Iter<'n, (Cow<'a, str>, Node<'a>)>,
    name: &'n str,
    value: &'n Node<'a>,
}

impl<'a> MapAccess<'a> for Fields<'_, 'a> {
    type Error = JsonError;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, JsonError> {
        let Some((name, value)) = self.left.next() else { return Ok(None) };
        (self.name, self.value) = (name, value);
        match name {
            Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            Cow::Owned(name) => seed.deserialize(name.as_str().into_deserializer()).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, JsonError> {
        seed.deserialize(self.value).map_err(|error| error.reading(self.value).in_field(self.name))
    }
}
