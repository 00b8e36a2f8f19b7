//! What Tollgate's tests share: real servers on free ports, and faults between them and us.
